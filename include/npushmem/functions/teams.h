/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams and contexts. Expanded several times; see npushmem/functions.h for the rows.
 *
 * A team is a set of PEs numbered from 0. NPUSHMEM_TEAM_WORLD and NPUSHMEM_TEAM_SHARED (the PEs of this host, whose
 * memory can be mapped) always exist. Calls on NPUSHMEM_TEAM_INVALID return -1, NULL or nonzero; so do calls on an
 * unknown handle, such as that of a destroyed team, with a report. One thread at a time in collective calls of one
 * team. (1.6, section "Team Management Routines".)
 *
 * Errors: see each function; calls that return a code also report. A split whose members give different arguments makes
 * no team.
 *
 * Ordering: splits synchronise the members and complete nothing; neither does team_sync. A context's own fence and
 * quiet order and complete its operations. Its operations are also completed when it or its team is destroyed, and by
 * finalize.
 *
 * Parameters: xrange: number of PEs in a row; xaxis_config, yaxis_config: parameters of the team of the row and of the
 * column, may be NULL; xaxis_mask, yaxis_mask: which members of them count; xaxis_team, yaxis_team: receive the
 * handles; ctx: a context, or receives the handle of the new one. */

/* Number of this PE in the team, and number of its PEs; -1 for a team that does not exist. */
NPUSHMEM_PLAIN(team_my_pe, int, (team), npushmem_team_t team)
NPUSHMEM_PLAIN(team_n_pes, int, (team), npushmem_team_t team)
/* *config receives the parameters that the team was made with; those not in config_mask stay. 0, or nonzero. */
NPUSHMEM_PLAIN(team_get_config, int, (team, config_mask, config), npushmem_team_t team, long config_mask,
               npushmem_team_config_t* config)
/* The number in dest_team of the PE that has number src_pe in src_team; -1 if there is none. */
NPUSHMEM_PLAIN(team_translate_pe, int, (src_team, src_pe, dest_team), npushmem_team_t src_team, int src_pe,
               npushmem_team_t dest_team)
/* Collective over parent_team, with equal start, stride and size. The new team has the PEs start, start + stride, ...
 * (size of them) of the parent; other PEs get NPUSHMEM_TEAM_INVALID and 0. Beyond the standard, and not under
 * NPUSHMEM_CHECK=1, PEs may make different teams in one call, if the members of each team give the same triplet.
 * Nonzero, on all PEs: the triplet leaves the parent, PEs disagree, or no team can be made. Members of config that
 * config_mask excludes, and all of them when config is NULL, have their default: num_contexts 0. */
NPUSHMEM_PLAIN(team_split_strided, int, (parent_team, start, stride, size, config, config_mask, new_team),
               npushmem_team_t parent_team, int start, int stride, int size, const npushmem_team_config_t* config,
               long config_mask, npushmem_team_t* new_team)
/* Collective over parent_team, with equal xrange. PE p of the parent is at x = p % xrange, y = p / xrange; it gets the
 * team of its row (number: x) and that of its column (number: y). */
NPUSHMEM_PLAIN(team_split_2d, int,
               (parent_team, xrange, xaxis_config, xaxis_mask, xaxis_team, yaxis_config, yaxis_mask, yaxis_team),
               npushmem_team_t parent_team, int xrange, const npushmem_team_config_t* xaxis_config, long xaxis_mask,
               npushmem_team_t* xaxis_team, const npushmem_team_config_t* yaxis_config, long yaxis_mask,
               npushmem_team_t* yaxis_team)
/* Collective over the team, which ends. Quiets and destroys its contexts too. Predefined teams stay. */
NPUSHMEM_PLAIN(team_destroy, void, (team), npushmem_team_t team)
/* As ptr, with the PE's number in the team. */
NPUSHMEM_PLAIN(team_ptr, void*, (team, object, pe), npushmem_team_t team, const void* object, int pe)
/* Returns when all PEs of the team have entered; completes nothing. 0, or nonzero with a report. */
NPUSHMEM_PLAIN(team_sync, int, (team), npushmem_team_t team)

/* ---- Contexts ----
 * Only a context's own fence and quiet order and complete its operations. PE numbers are those of its team. options: of
 * NPUSHMEM_CTX_SERIALIZED, _PRIVATE, _NOSTORE; they restrict the caller and change no result (NPUSHMEM_CHECK=1 reports
 * and rejects calls by threads that the first two exclude). A call with an unknown handle, such as that of a destroyed
 * context, is reported and does nothing. At most 16383 contexts exist at a time. Nonzero: nothing was made (options
 * unknown, team invalid). (1.6, "Communication Management Routines".) */
NPUSHMEM_PLAIN(ctx_create, int, (options, ctx), long options, npushmem_ctx_t* ctx)
NPUSHMEM_PLAIN(team_create_ctx, int, (team, options, ctx), npushmem_team_t team, long options, npushmem_ctx_t* ctx)
/* Quiets the context, then destroys it. NPUSHMEM_CTX_INVALID: nothing. The default context: rejected. */
NPUSHMEM_PLAIN(ctx_destroy, void, (ctx), npushmem_ctx_t ctx)
/* *team receives the context's team; NPUSHMEM_CTX_INVALID: NPUSHMEM_TEAM_INVALID, and nonzero. */
NPUSHMEM_PLAIN(ctx_get_team, int, (ctx, team), npushmem_ctx_t ctx, npushmem_team_t* team)
/* Hint that many small operations follow until stop. They do nothing here: every operation starts when it is called,
 * and SHMEM_CTX_SESSION_BATCH does not delay it. All options and configurations are accepted. */
NPUSHMEM_PLAIN(ctx_session_start, void, (ctx, options, config, config_mask), npushmem_ctx_t ctx, long options,
               const npushmem_ctx_session_config_t* config, long config_mask)
NPUSHMEM_PLAIN(ctx_session_stop, void, (ctx), npushmem_ctx_t ctx)
