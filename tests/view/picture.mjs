// SPDX-License-Identifier: BSD-2-Clause
// picture.mjs OUT BROWSER PAGE PNG: from picture.sh. The worst operation of the first verdict, as a click on that shows it.
import {launch, open, settle} from './browser.mjs';

const [out, executable, file, png] = process.argv.slice(2);
const browser = await launch(out, executable);
const page = await open(browser, file);

await page.setViewport({width: 1400, height: 800});
await page.click('#pane button');
await settle(page);
await page.mouse.move(0, 0);
await settle(page);
await page.screenshot({path: png});
await browser.close();
