/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logarithms and powers that give the same bits on every machine.
 *
 * Ranks agree on frame sizes and moduli without talking: each computes them from the same shared numbers. The
 * mathematical library's log2 and exp2 differ in the last bit between versions, these do not: they use only IEEE
 * addition, multiplication, division and the exponent field. Relative error below 1e-13, ample for choosing a modulus.
 */
#ifndef CST_CODEC_PORTABLE_H
#define CST_CODEC_PORTABLE_H

/* log2(x) for finite x > 0 (denormals too); -2000 for x <= 0, so that "no energy" compares below everything. */
double cst_log2(double x);
/* 2^x; 0 below -1100, 2^1023 above 1023. */
double cst_exp2(double x);
/* x * 2^e without intermediate overflow, for any int e; exact unless the result is denormal or overflows. */
double cst_scale2(double x, int e);
/* floor(log2(|x|)) for finite x != 0; -2000 for 0. */
int cst_exponent(double x);
#endif
