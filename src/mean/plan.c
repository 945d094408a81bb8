/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/plan.h"

#include "codec/block.h"
#include "codec/model.h"
#include "codec/portable.h"

#include <math.h>

/* Packing radius of the coarse lattice over the deviation of what it has to take. At 4.9 one block in 20 has an E8 cell
 * out of reach, at 4.4 one in 20 a coordinate of Z; the checksum corrects up to three such (codec/correct.h). */
static const double reach_e8 = 4.9, reach_z = 4.4;

static const double root2 = 1.4142135623730951;

double cst_error_up(const cst_plan_rules *rules, double beta, double s2)
{
    double n = rules->ranks;
    return 0.5 * beta * s2 * n / (n - 1);
}

double cst_error_down(const cst_plan_rules *rules, double beta, double s2, double mean_error)
{
    double all = beta * s2 / rules->ranks, left = all - mean_error;
    return left > 0.2 * all ? left : 0.2 * all;
}

static double position_variance(double s2, double r2, int p)
{
    return s2 + r2 * s2 / (p * r2 + s2);
}

double cst_position_factor(const cst_plan_rules *rules, double s2, double r2, int position)
{
    if (!(s2 > 0))
        return 1;
    double sum = 0;
    for (int p = 1; p < rules->ranks; p++)
        sum += position_variance(s2, r2, p);
    return sqrt(position_variance(s2, r2, position) * (rules->ranks - 1) / sum);
}

static double mean_position_variance(const cst_plan_rules *rules, double s2, double r2)
{
    double sum = 0;
    for (int p = 1; p < rules->ranks; p++)
        sum += position_variance(s2, r2, p);
    return sum / (rules->ranks - 1);
}

double cst_reference_up(double s2, double r2, int k)
{
    double energy = r2 + s2 / k;
    return energy > 0 ? r2 / energy : 0;
}

double cst_reference_down(const cst_plan_rules *rules, double s2, double r2)
{
    double energy = r2 + s2;
    return energy > 0 ? (r2 + s2 / rules->ranks) / energy : 0;
}

double cst_reference_of_indices(const cst_plan_rules *rules, uint16_t s2, uint16_t r2)
{
    uint16_t top = s2 > r2 ? s2 : r2;
    int unit = ((int)top - 32768) / 32;
    return cst_reference_down(rules, cst_energy_value(s2, unit), cst_energy_value(r2, unit));
}

static double coarse_radius(uint8_t code, double modulus) /* in steps */
{
    return code == CST_CODE_E8 ? modulus / (root2 * reach_e8) : modulus / (2 * reach_z);
}

double cst_plan_sigma(uint8_t code, uint8_t class, double step)
{
    return coarse_radius(code, cst_classes[class].q) * step;
}

/* Step that gives error d. */
static double step_for(uint8_t code, double d)
{
    return sqrt(d / cst_code_error(code, 1));
}

/* The step with which q takes residuals of variance v and the code's own error. Infinite if q takes no step at all. */
static double step_of_modulus(uint8_t code, double q, double v)
{
    double radius = coarse_radius(code, q), square = radius * radius - cst_code_error(code, 1);
    return square > 0 ? sqrt(v / square) : HUGE_VAL;
}

/* A cheaper or dearer class of phase 1 shifts work to phase 2: bits that D1 = x of an even share costs there. */
static double shifted_bits(double x)
{
    return x < 1.6 ? -0.5 * cst_log2(2 - x) : HUGE_VAL;
}

static const double finest = 0.84; /* of the step that gives the planned error: a class's width */

static cst_plan plan_modulo(uint8_t code, double v, double d1, double share)
{
    cst_plan best = {.bits = HUGE_VAL};
    double best_total = HUGE_VAL;
    double target = step_for(code, d1);
    double modulus = sqrt(v + d1) / (target * coarse_radius(code, 1));
    for (unsigned class = CST_CLASS_MIN; class <= CST_CLASS_MAX; class ++) {
        if (!cst_class_valid(class) || cst_classes[class].q < 0.8 * modulus)
            continue;
        /* A step much finer than asked for would be of no use, and would rest on how well v is known. */
        double step = fmax(step_of_modulus(code, cst_classes[class].q, v), finest * target);
        double error = cst_code_error(code, step);
        double total = class / 4.0 + (step < HUGE_VAL ? shifted_bits(error / d1 * share) : HUGE_VAL);
        if (total < best_total) {
            best_total = total;
            best = (cst_plan){code, (uint8_t) class, step, error, class / 4.0};
        } else if (best_total < HUGE_VAL) {
            break; /* dearer from here on */
        }
    }
    return best;
}

/* Z never takes fewer bits than E8, so where only bits count it need not be looked at. */
static bool z_is_idle(const cst_plan_rules *rules)
{
    return (rules->may & CST_MAY_E8) && rules->second_price == 0;
}

cst_plan cst_plan_up(const cst_plan_rules *rules, double s2, double r2, double d1, double share, double reach)
{
    cst_plan best = {.bits = HUGE_VAL};
    double best_price = HUGE_VAL;
    double v = s2 > 0 ? mean_position_variance(rules, s2, r2) * reach * reach : 0;
    const struct {
        unsigned may;
        uint8_t code;
    } codes[] = {{CST_MAY_ENTROPY, CST_CODE_ENTROPY}, {CST_MAY_E8, CST_CODE_E8}, {CST_MAY_Z, CST_CODE_Z}};
    for (int i = 0; i < 3; i++) {
        if (!(rules->may & codes[i].may) || (codes[i].code == CST_CODE_Z && z_is_idle(rules)))
            continue;
        cst_plan p;
        if (codes[i].code == CST_CODE_ENTROPY) {
            double step = step_for(CST_CODE_ENTROPY, d1), variance = (s2 + r2) / (step * step);
            p = (cst_plan){CST_CODE_ENTROPY, (uint8_t)cst_model_class(variance), step, d1, cst_model_bits(variance)};
        } else {
            p = plan_modulo(codes[i].code, v, d1, share);
        }
        double price = p.bits - (p.bits < HUGE_VAL ? 0.5 * cst_log2(d1 / p.error) : 0) -
                       (p.code == CST_CODE_Z ? rules->second_price : 0);
        if (price < best_price) {
            best_price = price;
            best = p;
        }
    }
    return best;
}

/* Largest need among 16 cells (E8) or 128 coordinates (Z) of n - 1 receivers, over root 2 or 2 deviations: mean of the
 * logarithm, simulated; exact to 1 % for n = 2, 8, 32. And the deviation of that logarithm. */
static double typical_reach(uint8_t code, int ranks)
{
    double ln = 0.6931471805599453 * cst_log2(ranks - 1);
    return code == CST_CODE_E8 ? sqrt(11.84 + 2.14 * ln) : sqrt(7.94 + 1.88 * ln);
}

static double reach_deviation(int ranks)
{
    return 0.157 / (1 + 0.13 * cst_log2(ranks - 1));
}

/* Expected class over a distribution of needs: five equally likely ones, 0, 0.5244 and 1.2816 deviations of the logarithm
 * away from the middle. A quarter is a class's share of a bit. */
static double expected_bits(double residual, double deviation, double off)
{
    const double near = cst_exp2(0.5244 * deviation), far = cst_exp2(1.2816 * deviation);
    const double factor[5] = {1 / far, 1 / near, 1, near, far};
    double bits = 0;
    for (int i = 0; i < 5; i++) {
        uint32_t class = cst_class_for((float)(residual * factor[i] + off));
        if (!class)
            return HUGE_VAL;
        bits += class / 20.0;
    }
    return bits;
}

/* sigma2: variance of the sent point less a multiple of a decoded vector. */
static cst_plan down_modulo(const cst_plan_rules *rules, uint8_t code, double sigma2, double a2, double d2, uint8_t up,
                            double step1)
{
    double step = step_for(code, d2);
    double residual = typical_reach(code, rules->ranks) * sqrt(sigma2 + d2) / step * (code == CST_CODE_E8 ? root2 : 2);
    double off = a2 * cst_code_reach(up, code == CST_CODE_E8) * step1 / step + 0.02;
    const double nibbles = 4.0 / CST_UNIT;
    return (cst_plan){code, 0, step, d2, expected_bits(residual, reach_deviation(rules->ranks), off) + nibbles};
}

cst_plan cst_plan_down(const cst_plan_rules *rules, double s2, double r2, double mean_error, double d2, uint8_t up,
                       double step1)
{
    double n = rules->ranks, energy = r2 + s2 / n + mean_error, a2 = cst_reference_down(rules, s2, r2);
    /* The mean holds 1/n of the receiver's own quantisation error. */
    double d1 = mean_error * n * n / (n - 1), own = a2 - 1 / n;
    double v = (r2 + s2 / n) * (1 - a2) + d1 * ((n - 2) / (n * n) + own * own);
    cst_plan best = {.bits = HUGE_VAL};
    double best_price = HUGE_VAL;
    if (rules->may & CST_MAY_ENTROPY) {
        double step = step_for(CST_CODE_ENTROPY, d2), variance = energy / (step * step);
        best = (cst_plan){CST_CODE_ENTROPY, (uint8_t)cst_model_class(variance), step, d2, cst_model_bits(variance)};
        best_price = best.bits;
    }
    for (int e8 = 1; e8 >= 0; e8--) {
        if (!(rules->may & (e8 ? CST_MAY_E8 : CST_MAY_Z)) || (!e8 && z_is_idle(rules)))
            continue;
        cst_plan p = down_modulo(rules, e8 ? CST_CODE_E8 : CST_CODE_Z, v, a2, d2, up, step1);
        double price = p.bits - (e8 ? 0 : rules->second_price);
        if (price < best_price) {
            best_price = price;
            best = p;
        }
    }
    return best;
}

cst_plan cst_plan_down_ahead(const cst_plan_rules *rules, double s2, double r2, const cst_plan *up, double d2)
{
    double n = rules->ranks, mean_error = up->error * (n - 1) / (n * n);
    double factor = up->code == CST_CODE_ENTROPY ? 1 : cst_position_factor(rules, s2, r2, 1);
    return cst_plan_down(rules, s2, r2, mean_error, d2, up->code, up->step * factor);
}
