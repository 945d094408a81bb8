/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/conformance.h"

int main(int argc, char **argv)
{
    return conformance_main(&(conformance_target){.transport = "tcp", .processes = true}, argc, argv);
}
