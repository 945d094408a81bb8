/* SPDX-License-Identifier: Apache-2.0 */
#include "common/table.h"

#include <math.h>
#include <stdarg.h>

static void put(tool_table *table, const char *text)
{
    const tool_column *c = &table->columns[table->at++];
    fprintf(table->out, "%s%*s", table->at > 1 ? "  " : "", c->width, text);
    if (!c[1].title) {
        fputc('\n', table->out);
        fflush(table->out);
        table->at = 0;
    }
}

tool_table tool_table_start(FILE *out, const tool_column *columns)
{
    tool_table table = {out, columns, 0};
    for (const tool_column *c = columns; c->title; c++)
        put(&table, c->title);
    return table;
}

void tool_cell(tool_table *table, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(table, text);
}

void tool_cell_number(tool_table *table, double value, int digits)
{
    if (!isfinite(value)) {
        tool_cell(table, isnan(value) ? "-" : "inf");
        return;
    }
    int whole = value == 0 ? 1 : (int)floor(log10(fabs(value))) + 1;
    tool_cell(table, "%.*f", whole < digits ? digits - whole : 0, value);
}

const char *tool_size_text(char out[32], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    while (bytes >= 1024 && u < 4) {
        bytes /= 1024;
        u++;
    }
    snprintf(out, 32, bytes == floor(bytes) ? "%.0f %s" : "%.3g %s", bytes, units[u]);
    return out;
}
