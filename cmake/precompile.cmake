# rushlight_precompile(TARGET [HEADER...] | TARGET AS OTHER): the headers of Rushlight, parsed once for the target in place
# of once for each of its sources, which go on including what they use. Without a header it is <torch/torch.h> where the
# target links to rushlight::torch_compat itself, and <rushlight.h> elsewhere; call it after target_link_libraries. AS
# takes what another target, which compiles with the same options, has parsed.
function(rushlight_precompile target)
  # GCC does not keep in a precompiled header which warnings its code has switched off.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-init-list-lifetime>)
  if(ARGV1 STREQUAL "AS")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
    return()
  endif()
  set(headers ${ARGN})
  if(NOT headers)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    set(headers "<rushlight.h>")
    if("rushlight::torch_compat" IN_LIST libraries)
      set(headers "<torch/torch.h>")
    endif()
  endif()
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()
