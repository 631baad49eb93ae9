// The search of search.rs for one kind of model, and the steps of improve.rs: one work group for each pair, one lane
// for each sample of a batch.
//
// From Rust: KIND, ROWS (matches of a sample), LANES, SUMS, SHARES, SMALLEST, and IMPROVING, SETTLING, GAIN, DAMPED and
// MOST_DAMPED of improve.rs. The state is in local memory, and every turn of the single loop passes the same barriers,
// whether it judges a batch or computes a step.

#define PAIR_NUMBERS 20
#define JUDGE 0u
#define IMPROVE 1u
#define SETTLE 2u
#define SETTLED 3u
#define DONE 4u

typedef struct {
    // The pair's first match, the number of its matches, the number of entries of its table `until` (sampler.rs), and
    // the most samples.
    u32 first, matches, until, most;
} Pair;

typedef struct {
    f64 model[9], essential[9];
    u32 inliers, drawn;
} Found;

FUNCTION u64 finish(u64 z) {
    z = (z ^ (z >> 30)) * (u64)0xbf58476d1ce4e5b9ul;
    z = (z ^ (z >> 27)) * (u64)0x94d049bb133111ebul;
    return z ^ (z >> 31);
}

// The sample of a number: sampler.rs.
FUNCTION void draw(
    const GLOBAL u32 *order, const GLOBAL u64 *until, u32 grades, u32 matches, u64 key, u64 number, u32 *sample) {
    u64 state = finish(key ^ number);
    u32 low = 0, high = grades;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (until[middle] <= number / 2) low = middle + 1;
        else high = middle;
    }
    i32 best = low < grades && number % 2 == 0, newest = best && low > 0;
    u32 pool = best ? ROWS + low : matches;
    u32 among = newest ? pool - 1 : pool;
    i32 drawn = newest ? ROWS - 1 : ROWS;
    i32 i = 0;
    while (i < drawn) {
        state += (u64)0x9e3779b97f4a7c15ul;
        u32 candidate = (u32)(((finish(state) >> 32) * (u64)among) >> 32);
        if (best) candidate = order[candidate];
        i32 fresh = 1;
        for (i32 k = 0; k < i; k++) fresh = fresh && sample[k] != candidate;
        if (fresh) sample[i++] = candidate;
    }
    if (newest) sample[ROWS - 1] = order[pool - 1];
}

// The number of matches that agree; where they are no more than `least`, any number up to `least`.
FUNCTION u32 count_all(const GLOBAL f64 *places, u32 matches, const f64 *model, f64 limit, u32 least) {
    u32 count = 0;
    for (u32 i = 0; i < matches; i++) {
        const GLOBAL f64 *p = places + 4 * (u64)i;
        count += (u32)agrees(model, p[0], p[1], p[2], p[3], limit);
        if ((i & 63u) == 63u && count + (matches - 1u - i) <= least) return count;
    }
    return count;
}

// The model of a sample with most inliers, if more than `inliers` was at first; of equal ones the first.
typedef struct {
    f64 model[9], essential[9];
    u32 inliers;
} Best;

FUNCTION void take(Best *best, const f64 *model, const f64 *essential, const GLOBAL f64 *places, u32 matches, f64 limit) {
    u32 inliers = count_all(places, matches, model, limit, best->inliers);
    if (inliers > best->inliers) {
        best->inliers = inliers;
        for (i32 i = 0; i < 9; i++) {
            best->model[i] = model[i];
            best->essential[i] = essential[i];
        }
    }
}

#if KIND == HOMOGRAPHY
// The sum of the squared distances of four points from the first of them.
FUNCTION f64 extent_of(f64 (*points)[2]) {
    f64 sum = 0.0;
    for (i32 i = 1; i < 4; i++) {
        f64 x = points[i][0] - points[0][0], y = points[i][1] - points[0][1];
        sum = sum + (x * x + y * y);
    }
    return sum;
}

// The homography through four matches: minimal.rs.
FUNCTION i32 homography_of(f64 (*a)[2], f64 (*b)[2], f64 *h) {
    f64 frame_a[9], frame_b[9], inverse_a[9], inverse_b[9], weighted[9], wa[3], wb[3];
    f64 last_a[3] = {a[3][0], a[3][1], 1.0}, last_b[3] = {b[3][0], b[3][1], 1.0}, first[3] = {a[0][0], a[0][1], 1.0};
    for (i32 c = 0; c < 3; c++) {
        for (i32 r = 0; r < 2; r++) {
            frame_a[3 * r + c] = a[c][r];
            frame_b[3 * r + c] = b[c][r];
        }
        frame_a[6 + c] = 1.0;
        frame_b[6 + c] = 1.0;
    }
    adjugate3(frame_a, inverse_a);
    adjugate3(frame_b, inverse_b);
    times3(inverse_a, last_a, wa);
    times3(inverse_b, last_b, wb);
    f64 sign = determinant3(frame_a) * determinant3(frame_b);
    f64 least_a = 1e-9 * extent_of(a), least_b = 1e-9 * extent_of(b);
    if (!(fabs(sign) > least_a * least_b)) return 0;
    for (i32 c = 0; c < 3; c++)
        if (!(fabs(wa[c]) > least_a && fabs(wb[c]) > least_b && wa[c] * wb[c] * sign > 0.0)) return 0;
    for (i32 i = 0; i < 9; i++) weighted[i] = frame_b[i] * wb[i % 3] / wa[i % 3];
    product3(weighted, inverse_a, h);
    f64 front = dot3(h + 6, first);
    for (i32 i = 0; i < 9; i++) h[i] = h[i] / front;
    return is_finite3(h);
}
#endif

FUNCTION void judge(
    Best *best, const GLOBAL f64 *places, u32 matches, f64 (*a)[2], f64 (*b)[2], const GLOBAL f64 *numbers,
    f64 limit) {
    const f64 none[9] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
#if KIND == HOMOGRAPHY
    f64 h[9];
    if (homography_of(a, b, h)) take(best, h, none, places, matches, limit);
#elif KIND == FUNDAMENTAL
    f64 models[3][9];
    u32 found = seven_point(a, b, models);
    for (i32 r = 0; r < 3; r++)
        if (found >> r & 1u) take(best, models[r], none, places, matches, limit);
#else
    f64 from_a[9], from_b[9], rays_a[ROWS][2], rays_b[ROWS][2], e[9], f[9];
    for (i32 i = 0; i < 9; i++) {
        from_a[i] = numbers[2 + i];
        from_b[i] = numbers[11 + i];
    }
    for (i32 i = 0; i < ROWS; i++) {
        rays_a[i][0] = a[i][0] * from_a[0] + from_a[2];
        rays_a[i][1] = a[i][1] * from_a[4] + from_a[5];
        rays_b[i][0] = b[i][0] * from_b[0] + from_b[6];
        rays_b[i][1] = b[i][1] * from_b[4] + from_b[7];
    }
    Reduced reduced;
    reduced_of(rays_a, rays_b, &reduced);
    for (i32 reversed = 0; reversed < 2; reversed++) {
        f64 low = -1.0, at_low = horner(reduced.polynomial, reversed, low);
        for (i32 cell = 0; cell < CELLS; cell++) {
            f64 high = (f64)(cell + 1) * (2.0 / (f64)CELLS) - 1.0;
            f64 at_high = horner(reduced.polynomial, reversed, high);
            if ((at_low > 0.0) != (at_high > 0.0)) {
                f64 root = root_in(reduced.polynomial, reversed, low, at_low, high, at_high);
                if (essential_of(&reduced, reversed ? 1.0 / root : root, e) && oriented(e, rays_a, rays_b, ROWS)) {
                    fundamental_of(from_b, e, from_a, f);
                    take(best, f, e, places, matches, limit);
                }
            }
            low = high;
            at_low = at_high;
        }
    }
#endif
}

// The limit of a step in units of T squared.
FUNCTION f64 widening(u32 phase, u32 move) {
    if (phase != IMPROVE) return 1.0;
    return move == 0u ? 4.0 : move == 1u ? 2.25 : 1.0;
}

KERNEL(search_models) {
    // The results of every lane, of a step or of a batch.
    LOCAL f64 pool[LANES * (SUMS + 1)];
    LOCAL f64 sums[SUMS];
    LOCAL u32 counts[LANES];
    // The model that the steps have reached, and the best.
    LOCAL f64 at_model[9], at_essential[9], best_model[9], best_essential[9];
    LOCAL u32 best_inliers, phase, move, drawn, needed, stepped;
    // Settling: the loss of the best model, the sums of a step from it, and how it is damped.
    LOCAL f64 kept[SUMS], loss, damping;
    LOCAL u32 gained;
    const u32 lane = (u32)LANE_X;
    const Pair pair = pairs[GROUP_X];
    const GLOBAL f64 *numbers = all_numbers + (u64)GROUP_X * PAIR_NUMBERS, *places = all_places + 4 * (u64)pair.first;
    const f64 limit = numbers[KIND == HOMOGRAPHY ? 0 : 1];
    if (pair.most == 0) {
        // This kind is not searched for.
        if (lane == 0) {
            for (i32 i = 0; i < 9; i++) found[GROUP_X].model[i] = found[GROUP_X].essential[i] = 0.0;
            found[GROUP_X].inliers = 0;
            found[GROUP_X].drawn = 0;
        }
        return;
    }
    if (lane == 0) {
        best_inliers = starts[GROUP_X].inliers;
        for (i32 i = 0; i < 9; i++) {
            at_model[i] = best_model[i] = starts[GROUP_X].model[i];
            at_essential[i] = best_essential[i] = starts[GROUP_X].essential[i];
        }
        phase = best_inliers > 0 ? IMPROVE : JUDGE;
        move = 0;
        drawn = 0;
        needed = pair.most;
    }
    BARRIER();
    do {
        // A batch of samples, or a step's sums.
        if (phase == JUDGE) {
            u32 sample[ROWS];
            f64 a[ROWS][2], b[ROWS][2];
            draw(order + pair.first, until + pair.first, pair.until, pair.matches, keys[GROUP_X], (u64)drawn + lane, sample);
            for (i32 i = 0; i < ROWS; i++) {
                const GLOBAL f64 *p = places + 4 * (u64)sample[i];
                a[i][0] = p[0];
                a[i][1] = p[1];
                b[i][0] = p[2];
                b[i][1] = p[3];
            }
            Best best;
            best.inliers = best_inliers;
            judge(&best, places, pair.matches, a, b, numbers, limit);
            counts[lane] = best.inliers;
            if (best.inliers > best_inliers) {
                for (i32 i = 0; i < 9; i++) {
                    pool[lane * (SUMS + 1) + i] = best.model[i];
                    pool[lane * (SUMS + 1) + 9 + i] = best.essential[i];
                }
            }
        } else {
            f64 own[SUMS], model[9], wide = widening(phase, move) * limit;
            for (i32 i = 0; i < SUMS; i++) own[i] = 0.0;
            for (i32 i = 0; i < 9; i++) model[i] = at_model[i];
            for (u32 i = lane; i < pair.matches; i += LANES) {
                const GLOBAL f64 *p = places + 4 * (u64)i;
                add_term(model, p[0], p[1], p[2], p[3], wide, phase == IMPROVE, own);
            }
            for (i32 i = 0; i < SUMS; i++) pool[lane * (SUMS + 1) + i] = own[i];
        }
        BARRIER();
        // The winner of the batch, or the sums over all lanes, in pairs.
        if (phase == JUDGE) {
            if (lane == 0) {
                u32 winner = LANES, most = best_inliers;
                for (u32 i = 0; i < LANES; i++) {
                    if (counts[i] > most) {
                        winner = i;
                        most = counts[i];
                    }
                }
                stepped = winner < LANES;
                if (stepped) {
                    best_inliers = most;
                    for (i32 i = 0; i < 9; i++) {
                        at_model[i] = best_model[i] = pool[winner * (SUMS + 1) + i];
                        at_essential[i] = best_essential[i] = pool[winner * (SUMS + 1) + 9 + i];
                    }
                }
            }
        } else if (lane < SUMS) {
            for (u32 half_way = LANES / 2; half_way > 0; half_way /= 2) {
                for (u32 l = 0; l < half_way; l++) {
                    pool[l * (SUMS + 1) + lane] = pool[l * (SUMS + 1) + lane] + pool[(l + half_way) * (SUMS + 1) + lane];
                }
            }
            sums[lane] = pool[lane];
        }
        BARRIER();
        // Settling compares the loss at the last step's model with the least before, and continues from the lower one.
        if (phase == SETTLE && lane == 0) {
            gained = move == 0u || (stepped && sums[0] < loss);
            if (gained) {
                if (move > 0u) damping = damping * 0.1;
                gained = move == 0u || loss - sums[0] > GAIN * loss ? 2u : 1u;
                loss = sums[0];
                for (i32 i = 0; i < 9; i++) {
                    best_model[i] = at_model[i];
                    best_essential[i] = at_essential[i];
                }
                for (i32 i = 0; i < SUMS; i++) kept[i] = sums[i];
            } else if (stepped && sums[0] - loss <= GAIN * loss) {
                gained = 1u;
            } else {
                f64 more = damping * 10.0;
                damping = more > DAMPED ? more : DAMPED;
            }
            for (i32 i = 0; i < 9; i++) {
                at_model[i] = best_model[i];
                at_essential[i] = best_essential[i];
            }
        }
        BARRIER();
        // The next model. Settling ends where the model no longer changes.
        if (lane == 0 && (phase == IMPROVE || (phase == SETTLE && gained != 1u && move < SETTLING && damping <= MOST_DAMPED))) {
            const f64 damped = phase == SETTLE ? damping : 0.0;
            const LOCAL_POINTER f64 *from = phase == SETTLE ? kept : sums;
            f64 model[9];
            for (i32 i = 0; i < 9; i++) model[i] = at_model[i];
#if KIND == ESSENTIAL
            f64 e[9], from_a[9], from_b[9];
            for (i32 i = 0; i < 9; i++) {
                e[i] = at_essential[i];
                from_a[i] = numbers[2 + i];
                from_b[i] = numbers[11 + i];
            }
            stepped = (u32)step_from(from, damped, from_b, from_a, model, e);
            for (i32 i = 0; i < 9; i++) at_essential[i] = e[i];
#else
            stepped = (u32)step_from(from, damped, model);
#endif
            for (i32 i = 0; i < 9; i++) at_model[i] = model[i];
        } else if (lane == 0 && phase == SETTLE) {
            phase = SETTLED;
        }
        BARRIER();
        if (phase == IMPROVE || phase == SETTLED) {
            f64 model[9];
            u32 count = 0;
            for (i32 i = 0; i < 9; i++) model[i] = at_model[i];
            for (u32 i = lane; i < pair.matches; i += LANES) {
                const GLOBAL f64 *p = places + 4 * (u64)i;
                count += (u32)agrees(model, p[0], p[1], p[2], p[3], limit);
            }
            counts[lane] = count;
        }
        BARRIER();
        // The next phase.
        if (lane == 0) {
            u32 search_on = 0;
            if (phase == JUDGE) {
                drawn += LANES;
                if (stepped) {
                    phase = IMPROVE;
                    move = 0;
                } else {
                    search_on = 1;
                }
            } else if (phase == SETTLE) {
                move++;
            } else {
                u32 inliers = 0;
                for (u32 i = 0; i < LANES; i++) inliers += counts[i];
                move++;
                if (phase == SETTLED || (stepped && inliers >= best_inliers)) {
                    best_inliers = inliers;
                    for (i32 i = 0; i < 9; i++) {
                        best_model[i] = at_model[i];
                        best_essential[i] = at_essential[i];
                    }
                }
                if (phase == SETTLED) {
                    phase = DONE;
                } else if (!stepped || move == IMPROVING) {
                    u32 share = (u32)((u64)best_inliers * SHARES / pair.matches);
                    u64 fewer = (u64)budget[share < SHARES ? share : SHARES] * (pair.until > 0 ? 2u : 1u);
                    needed = fewer < pair.most ? (u32)fewer : pair.most;
                    search_on = 1;
                }
            }
            if (search_on) {
                phase = drawn < needed ? JUDGE : best_inliers > 0 ? SETTLE : DONE;
                move = 0;
                damping = 0.0;
                for (i32 i = 0; i < 9; i++) {
                    at_model[i] = best_model[i];
                    at_essential[i] = best_essential[i];
                }
            }
            if (phase == DONE) {
                for (i32 i = 0; i < 9; i++) {
                    found[GROUP_X].model[i] = best_model[i];
                    found[GROUP_X].essential[i] = best_essential[i];
                }
                found[GROUP_X].inliers = best_inliers;
                found[GROUP_X].drawn = drawn;
            }
        }
        BARRIER();
    } while (phase != DONE);
}
