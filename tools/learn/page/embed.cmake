# SPDX-License-Identifier: Apache-2.0
# cmake -DOUT=page.c -DDIR=folder -P embed.cmake: page.css and page.js (ASCII) as C arrays.
set(text "/* Made by embed.cmake from page.css and page.js. */\nextern const char learn_page_css[], learn_page_js[];\n")
foreach(kind css js)
  file(READ ${DIR}/page.${kind} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REPLACE "0x0a," "0x0a,\n" bytes "${bytes}")
  string(APPEND text "const char learn_page_${kind}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${text}")
