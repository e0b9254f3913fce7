// Marks of what a library exports, which none of Rushlight's needs.
#pragma once

#define C10_EXPORT
#define C10_IMPORT
#define C10_HIDDEN
#define C10_API
#define TORCH_API
