// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rectangles into an image of our own: some ten thousand a frame, for which a canvas takes ten times as long without a GPU.
 * Text and lines are drawn onto it by the canvas afterwards.
 */

const raster = {w: 0, h: 0, px: new Uint32Array(0), image: null};

function rasterSize(w, h)
{
	if (raster.w === w && raster.h === h)
		return;
	raster.image = new ImageData(w, h);
	raster.px = new Uint32Array(raster.image.data.buffer);
	raster.w = w;
	raster.h = h;
}

function rasterClear(ink)
{
	raster.px.fill(ink);
}

/* Columns [x0, x1), rows [y0, y1), whole numbers. */
function rect(x0, y0, x1, y1, ink)
{
	const {w, h, px} = raster;

	if (x0 < 0)
		x0 = 0;
	if (x1 > w)
		x1 = w;
	if (y0 < 0)
		y0 = 0;
	if (y1 > h)
		y1 = h;
	if (x0 >= x1)
		return;
	if (x1 - x0 === 1) {
		for (let at = y0 * w + x0, end = y1 * w; at < end; at += w)
			px[at] = ink;
		return;
	}
	for (let y = y0; y < y1; y++)
		px.fill(ink, y * w + x0, y * w + x1);
}

/* Every third column: what has no end, or no meaning yet. */
function hatch(x0, y0, x1, y1, ink)
{
	for (let x = x0; x < x1; x += 3)
		rect(x, y0, x + 1, y1, ink);
}
