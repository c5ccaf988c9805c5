// Whether the server's classes lie as this plugin was compiled for.
#ifndef WEIR_PLUGIN_LAYOUT_GUARD_H
#define WEIR_PLUGIN_LAYOUT_GUARD_H

#include <string>

// What of the server's classes lies elsewhere than in the headers that the plugin was compiled with, in words: empty where
// all fits. Objects that the server makes itself are compared with what its headers say of them, and its accessors with
// the members that they read. Makes a thread of its own and ends it again; nothing is left changed.
// Only where `layout_can_be_looked_at`.
std::string layout_misfit();

// Whether the engines are up whose objects are looked at. A server that starts initialises those that are compiled in, and those
// that it loads, in the order of a hash table.
bool layout_can_be_looked_at();

#endif
