/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, host:port, port ranges and interface lists: what is taken, what is refused. */
#include "net/addr.h"
#include "net/iface.h"
#include "net/ports.h"
#include "net/resolve.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static cst_addr address(const char *text)
{
    cst_addr a;
    assert_int_equal(cst_addr_parse(text, &a), 0);
    return a;
}

static void addresses_print_as_they_parse(void **state)
{
    (void)state;
    static const char *const good[] = {"127.0.0.1", "10.77.0.255", "::1", "fd00::12", "2001:db8::1"};
    char text[CST_ADDR_TEXT];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cst_addr a = address(good[i]);
        assert_string_equal(cst_addr_format(&a, text), good[i]);
    }
    cst_addr a = address("::1");
    cst_addr_set_port(&a, 99);
    assert_string_equal(cst_addr_format(&a, text), "[::1]:99");
    a = address("10.0.0.1");
    cst_addr_set_port(&a, 65535);
    assert_string_equal(cst_addr_format(&a, text), "10.0.0.1:65535");
    a = address("fe80::1%lo");
    assert_string_equal(cst_addr_format(&a, text), "fe80::1%lo");

    static const char *const bad[] = {"",
                                      "10.0.0",
                                      "10.0.0.256",
                                      "host",
                                      ":::",
                                      "fe80::1%",
                                      "fe80::1%nosuch0",
                                      "1.2.3.4 ",
                                      "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(cst_addr_parse(bad[i], &a), -1);
}

static void mapped_addresses_become_ipv4(void **state)
{
    (void)state;
    cst_addr mapped = address("::ffff:10.1.2.3"), plain = address("10.1.2.3");
    cst_addr got = cst_addr_from(&mapped.any);
    assert_true(cst_addr_same(&got, &plain));
}

static void kinds_of_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool loopback, link_local, wildcard;
    } row[] = {
        {"127.0.0.1", true, false, false}, {"127.1.2.3", true, false, false},   {"::1", true, false, false},
        {"10.0.0.1", false, false, false}, {"169.254.3.4", false, true, false}, {"fe80::1", false, true, false},
        {"0.0.0.0", false, false, true},   {"::", false, false, true},          {"fd00::1", false, false, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        cst_addr a = address(row[i].text);
        assert_int_equal(cst_addr_is_loopback(&a), row[i].loopback);
        assert_int_equal(cst_addr_is_link_local(&a), row[i].link_local);
        assert_int_equal(cst_addr_is_wildcard(&a), row[i].wildcard);
    }
}

static void host_and_port(void **state)
{
    (void)state;
    char host[CST_HOST_TEXT];
    uint16_t port;
    assert_int_equal(cst_hostport_split("node1.example:29501", host, &port), 0);
    assert_string_equal(host, "node1.example");
    assert_int_equal(port, 29501);
    assert_int_equal(cst_hostport_split("[fd00::1]:1", host, &port), 0);
    assert_string_equal(host, "fd00::1");
    static const char *const bad[] = {"",           "host",    "host:",      ":1",        "host:0",
                                      "host:65536", "host:1x", "fd00::1:80", "[fd00::1]", "[fd00::1:80",
                                      "[]:80",      "host:-1", "a:b:1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(cst_hostport_split(bad[i], host, &port), -1);
    char longer[400];
    memset(longer, 'a', sizeof longer);
    strcpy(longer + sizeof longer - 4, ":80");
    assert_int_equal(cst_hostport_split(longer, host, &port), -1);
}

static void port_ranges(void **state)
{
    (void)state;
    cst_ports p;
    assert_int_equal(cst_ports_parse("40000-40100", &p), 0);
    assert_int_equal(p.low, 40000);
    assert_int_equal(p.high, 40100);
    assert_int_equal(cst_ports_parse("7", &p), 0);
    assert_int_equal(p.high, 7);
    static const char *const bad[] = {"",   "-",  "0",   "0-10",  "5-4",        "1-65536",
                                      "1-", "-9", "a-b", "1-2-3", "123456789-4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(cst_ports_parse(bad[i], &p), -1);
}

static bool takes(const char *list, const char *name, const char *addr)
{
    cst_iface_spec spec;
    cst_addr a = address(addr);
    assert_int_equal(cst_iface_parse(list, &spec), 0);
    return cst_iface_match(&spec, name, &a);
}

static void interface_lists(void **state)
{
    (void)state;
    assert_true(takes("eth", "eth0", "10.0.0.1"));
    assert_true(takes("ib,eth", "eth1", "10.0.0.1"));
    assert_false(takes("eth", "ens3", "10.0.0.1"));
    assert_false(takes("=eth", "eth0", "10.0.0.1"));
    assert_true(takes("=eth0,ib0", "ib0", "10.0.0.1"));
    assert_false(takes("^docker,lo", "docker0", "172.17.0.1"));
    assert_true(takes("^docker,lo", "eth0", "10.0.0.1"));
    assert_true(takes("^=eth1", "eth10", "10.0.0.1"));
    assert_false(takes("^=eth1", "eth1", "10.0.0.1"));
    assert_true(takes("10.0.0.0/8", "any", "10.200.3.4"));
    assert_false(takes("10.0.0.0/8", "any", "11.0.0.1"));
    assert_true(takes("10.1.2.0/23", "any", "10.1.3.255"));
    assert_false(takes("10.1.2.0/23", "any", "10.1.4.0"));
    assert_true(takes("fd00::/7", "any", "fc00::1"));
    assert_false(takes("0.0.0.0/0", "any", "fd00::1"));
    assert_true(takes("10.0.0.7", "any", "10.0.0.7"));
    assert_false(takes("10.0.0.7", "any", "10.0.0.8"));
    assert_false(takes("^10.0.0.0/8", "any", "10.0.0.8"));

    cst_iface_spec spec;
    static const char *const bad[] = {"",          "^",
                                      "=",         "eth,",
                                      ",eth",      "10.0.0.0/33",
                                      "10.0.0.0/", "fd00::/129",
                                      "eth0/8",    "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(cst_iface_parse(bad[i], &spec), -1);
}

static void interfaces_of_this_host(void **state)
{
    (void)state;
    cst_addr list[CST_IFACE_MAX];
    int count;
    coset_error why = COSET_ERROR_INIT;
    setenv("COSET_IFNAME", "=lo", 1);
    assert_int_equal(cst_iface_addresses(list, CST_IFACE_MAX, &count, &why), COSET_OK);
    for (int i = 0; i < count; i++)
        assert_true(cst_addr_is_loopback(&list[i]));
    setenv("COSET_IFNAME", "=nosuch0", 1);
    assert_int_equal(cst_iface_addresses(list, CST_IFACE_MAX, &count, &why), COSET_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, "COSET_IFNAME==nosuch0"));
    assert_non_null(strstr(why.text, "lo (127.0.0.1)"));
    setenv("COSET_IFNAME", "10.0.0.0/99", 1);
    assert_int_equal(cst_iface_addresses(list, CST_IFACE_MAX, &count, &why), COSET_ERR_ARGUMENT);
    unsetenv("COSET_IFNAME");
    assert_int_equal(cst_iface_addresses(list, CST_IFACE_MAX, &count, &why), COSET_OK);
    for (int i = 1; i < count; i++) /* ordinary ones first */
        assert_false(cst_addr_is_loopback(&list[i - 1]) && !cst_addr_is_loopback(&list[i]));

    cst_addr to = address("127.0.0.9"), own;
    assert_true(cst_iface_towards(&to, &own));
    assert_true(cst_addr_is_loopback(&own));
    assert_int_equal(cst_addr_port(&own), 0);
}

static void names(void **state)
{
    (void)state;
    cst_addr out[8];
    int count;
    coset_error why = COSET_ERROR_INIT;
    assert_int_equal(cst_resolve("10.0.0.1", 5, cst_deadline_in(0), out, 8, &count, &why), COSET_OK);
    assert_int_equal(count, 1);
    assert_int_equal(cst_addr_port(&out[0]), 5);
    assert_int_equal(cst_resolve("localhost", 6, cst_deadline_in(5000), out, 8, &count, &why), COSET_OK);
    for (int i = 0; i < count; i++) {
        assert_true(cst_addr_is_loopback(&out[i]));
        assert_int_equal(cst_addr_port(&out[i]), 6);
    }
    assert_int_equal(cst_resolve("no such host", 6, CST_NEVER, out, 8, &count, &why), COSET_ERR_ARGUMENT);
    uint64_t before = cst_now_ns();
    assert_int_equal(cst_resolve("no-such-host.invalid", 6, cst_deadline_in(300), out, 8, &count, &why),
                     COSET_ERR_SYSTEM);
    assert_non_null(strstr(why.text, "no-such-host.invalid"));
    assert_true(cst_now_ns() - before >= 300u * 1000000u); /* it was asked for until the deadline */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_print_as_they_parse),
        cmocka_unit_test(mapped_addresses_become_ipv4),
        cmocka_unit_test(kinds_of_addresses),
        cmocka_unit_test(host_and_port),
        cmocka_unit_test(port_ranges),
        cmocka_unit_test(interface_lists),
        cmocka_unit_test(interfaces_of_this_host),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
