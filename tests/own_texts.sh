# To be sourced: a text and a vocabulary for tests of programs, whatever data the machine has.

write_text() {
  local i
  for ((i = 0; i < 400; ++i)); do printf 'line %d of %d, %d\n' "$i" 400 $((i * i)); done
}

# GPT-2's spelling of the 256 bytes, and one pair, "l i", which is all that the file of merges has.
write_vocabulary() {
  local byte character hidden=256
  printf '{'
  for ((byte = 0; byte < 256; ++byte)); do
    character=$byte
    ((byte > 32 && byte < 127 || byte > 160 && byte != 173)) || character=$((hidden++))
    printf '"\\u%04x": %d, ' "$character" "$byte"
  done
  printf '"<|endoftext|>": 256, "li": 257}\n'
}
