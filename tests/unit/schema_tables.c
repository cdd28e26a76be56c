// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints what docs/trace.schema.json says about keys, in the form of `ncclscope check
 * --dump-tables`, so that check.sh can hold the two against each other.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *name, const char *key, const char *what)
{
	fprintf(stderr, "schema_tables: %s %s: %s\n", name, key, what);
	exit(1);
}

static const char *ref_name(const json_t *schema)
{
	const char *ref = json_string_value(json_object_get(schema, "$ref"));

	return ref && !strncmp(ref, "#/$defs/", 8) ? ref + 8 : NULL;
}

/* The few forms that a key's schema takes here; a form not known is a failure, not a guess. */
static void print_type(const char *name, const char *key, const json_t *schema)
{
	const json_t *items = json_object_get(schema, "items");
	const json_t *values = json_object_get(schema, "additionalProperties");
	const json_t *either = json_object_get(schema, "oneOf");
	const json_t *words = json_object_get(schema, "enum");
	const json_t *only = json_object_get(schema, "const");
	const char *type = json_string_value(json_object_get(schema, "type"));
	size_t i;

	if (ref_name(schema)) {
		fputs(ref_name(schema), stdout);
	} else if (ref_name(items)) {
		printf("[%s]", ref_name(items));
	} else if (ref_name(values)) {
		printf("{%s}", ref_name(values));
	} else if (ref_name(json_array_get(either, 0))) {
		printf("%s?", ref_name(json_array_get(either, 0)));
	} else if (words) {
		for (i = 0; i < json_array_size(words); i++)
			printf("%s%s", i ? "|" : "", json_string_value(json_array_get(words, i)));
	} else if (json_is_number(only)) {
		printf("%d", (int)json_number_value(only));
	} else if (type && !strcmp(type, "object")) {
		fputs("object", stdout);
	} else {
		fail(name, key, "a form that this test does not know");
	}
}

static bool is_required(const json_t *def, const char *key)
{
	const json_t *required = json_object_get(def, "required"), *name;
	size_t i;

	json_array_foreach (required, i, name)
		if (!strcmp(json_string_value(name), key))
			return true;
	return false;
}

static void print_def(const char *name, json_t *def)
{
	json_t *words = json_object_get(def, "enum"), *schema, *word;
	const char *key;
	size_t i;

	if (words) {
		printf("%s", name);
		json_array_foreach (words, i, word)
			printf(" \"%s\"", json_string_value(word));
		putchar('\n');
	}
	json_object_foreach (json_object_get(def, "properties"), key, schema) {
		printf("%s %s ", name, key);
		print_type(name, key, schema);
		printf(" %s\n", is_required(def, key) ? "required" : "optional");
	}
	json_array_foreach (json_object_get(def, "required"), i, word)
		if (!json_object_get(json_object_get(def, "properties"), json_string_value(word)))
			fail(name, json_string_value(word), "required, but not a property");
}

int main(int argc, char **argv)
{
	json_t *root, *def;
	json_error_t error;
	const char *name;

	root = argc == 2 ? json_load_file(argv[1], JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL,
					  &error)
			 : NULL;
	if (!root) {
		fprintf(stderr, "Usage: schema_tables trace.schema.json (%s)\n",
			argc == 2 ? error.text : "one argument");
		return 1;
	}
	json_object_foreach (json_object_get(root, "$defs"), name, def)
		print_def(name, def);
	json_decref(root);
	return 0;
}
