#pragma once

#include <string>
#include <string_view>

namespace examples {

/// A file as a `data:` URI, for the `src` of an HTML image: data_uri("image/png", png).
std::string data_uri(std::string_view mime_type, std::string_view bytes);

}  // namespace examples
