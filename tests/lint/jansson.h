/* SPDX-License-Identifier: BSD-2-Clause */
/* jansson with loops that cppcheck, which does not see the system's headers, can read. */
#include_next <jansson.h>

#undef json_array_foreach
#define json_array_foreach(array, i, value)                                                        \
	for ((i) = 0; (i) < json_array_size(array) && ((value) = json_array_get(array, i)); (i)++)

#undef json_object_foreach
#define json_object_foreach(object, key, value)                                                    \
	for ((key) = json_object_iter_key(json_object_iter(object));                               \
	     (key) && ((value) = json_object_get(object, key));                                    \
	     (key) = json_object_iter_key(                                                         \
		     json_object_iter_next(object, json_object_key_to_iter(key))))
