import { z } from '@hono/zod-openapi'
import { incidentById, lockIncident } from '../../db/incidents/incidents.ts'
import {
  describeWrite,
  type LoggedWrite,
  noteUndo,
  type UndoStanding,
  undosOf,
  writeByKey,
  writesOf,
} from '../../db/writes/undo.ts'
import { type Principal, permissionsOf, typesOf } from '../../domain/permissions.ts'
import { parseStepKey } from '../../domain/step-key.ts'
import type { Undoes } from '../../domain/undo.ts'
import { type listedUndo, listedUndos, shownUndo } from '../../domain/undo-answer.ts'
import { EffectRefused } from '../../effects/effect.ts'
import {
  lookAtLeft,
  movedOn,
  prepareUndo,
  requireUndoable,
  resolveUndo,
  showUndo,
  type UndoableWrite,
  whyNoUndo,
} from '../../effects/undo.ts'
import { type ApiDeps, requirePerson } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { actDirectly, directAnswer, directBody } from '../manual-change.ts'
import { incidentId } from './examples.ts'
import { goneOrMissing, incidentParams, requireIncident } from './incidents.ts'

const tag = 'platform'
const key = `${incidentId}.1:4:tool_started:0`
const params = z.object({ key: z.string().min(1).max(400) })

const example: z.input<typeof listedUndo> = {
  key,
  tool: 'git_revert',
  said: 'node-osl-1: Revert commit 0123abc in /srv/web: done',
  by: 'agent:incident-investigator',
  at: '2026-11-21T01:46:02.000000Z',
  targets: [{ kind: 'node', id: 'node-osl-1' }],
  undo: {
    tool: 'git_revert',
    arguments: { on: 'node-osl-1', path: '/srv/web', revision: '4d5e6f', if_head: '4d5e6f' },
    left: { 'HEAD of /srv/web': '4d5e6f' },
  },
  refused: null,
  undos: [],
}

const listEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/undo',
  permission: 'read',
  tag: 'incidents',
  summary: 'The writes of an incident, and which of them can be undone',
  description:
    'The response comes from the log; no device is queried. `GET /effects/{key}/undo` checks the current state for one write.',
  params: incidentParams,
  answer: listedUndos,
  example: { items: [example] },
  problems: [404],
  async run({ scope, params: { id } }) {
    await requireIncident(scope, id)
    const items = []
    for (const write of await writesOf(scope.db, id))
      items.push(toListed(write, await undosOf(scope.db, write.started.stepKey ?? '')))
    return { items }
  },
})

function toListed(write: LoggedWrite, undos: UndoStanding[]): z.input<typeof listedUndo> {
  const { stepKey, actor, at, metadata } = write.started
  const undo = write.finished?.metadata.undo
  const why = whyNoUndo(write, undos)
  return {
    key: stepKey ?? '',
    tool: metadata.tool,
    said: describeWrite(write),
    by: actor,
    at,
    targets: metadata.targets,
    undo: undo && !('none' in undo) ? { tool: undo.tool, arguments: undo.arguments, left: { ...undo.left } } : null,
    refused: why,
    undos,
  }
}

const showEndpoint = endpoint({
  method: 'get',
  path: '/effects/{key}/undo',
  permission: 'act_on_platform',
  tag,
  summary: 'The undo of a write, and whether its target has changed since the write',
  description:
    'Reads the current state of the device or platform, and changes nothing. `refused` is the reason why the undo is not allowed.',
  params,
  answer: shownUndo,
  example: { ...example, look: { isAsLeft: true, observed: 'as the write left it: HEAD of /srv/web: 4d5e6f' } },
  problems: [404, 424],
  async run({ params: { key: named } }, deps) {
    const { look, why, write, undos } = await showUndo(deps, await requireWrite(deps, named))
    return { ...toListed(write, undos), refused: why, look }
  },
})

const askEndpoint = endpoint({
  method: 'post',
  path: '/effects/{key}/undo',
  permission: 'act_on_platform',
  tag,
  summary: 'Undoes one write, if its target has not changed since',
  description:
    'An undo is a write of this person: it opens an incident, and is judged, approved, logged and verified like any other write. An undo only runs if the state has not changed since the write. 409 `UNDO_MOVED_ON`: somebody has changed that state; the incident of the write gets a row about the refusal. Each write is undone once at most. `wrong` lowers the trust of its tool after the undo.',
  params,
  body: z.strictObject({ ...directBody, wrong: z.boolean().optional() }),
  bodyExample: { reason: 'it was the wrong commit' },
  answer: z.looseObject({ detail: z.string(), key: z.string(), ...directAnswer }),
  example: { detail: 'git_revert by anna: held', key, incidentId, approvalId: null, status: 'done' },
  problems: [404, 409, 412, 424, 502, 504],
  async run({ params: { key: named }, body: { reason, alone, wrong = false }, principal, actor, c }, deps) {
    const { name } = requirePerson(principal, actor)
    const once = c.get('once')
    // Returns for a repeated key what the first request opened, without a new read, because the
    // undo may already be done.
    const write = await requireWrite(deps, named)
    const undoable = once?.opened
      ? { ...write, undo: recordedOf(write) }
      : await noteRefusal(deps, write, { name, actor }, requireAsked(deps, write))
    const undoes = toUndoes(write, wrong)
    if (wrong) await requireGrader(deps, undoes, principal)
    const noted = <T>(work: Promise<T>) => noteRefusal(deps, write, { name, actor }, work)
    // Makes no second plan for a repeated request, which gets the earlier response.
    const call = once?.opened ? undoable.undo : await noted(resolveUndo(deps, undoable))
    const act = await actDirectly(deps, {
      principal,
      actor,
      c,
      tool: call.tool,
      args: { ...call.arguments, reason },
      alone,
      prepare: () => noted(prepareUndo(deps, undoable, call)),
      undo: {
        undoes,
        async before(trx) {
          await lockIncident(trx, undoes.incidentId)
          const why = whyNoUndo(write, await undosOf(trx, undoes.key))
          if (why) throw new Problem(409, why.code, why.detail)
        },
        async after(trx, by) {
          const text = `${name} asked to undo ${undoes.tool} (${by}): ${reason}`
          await noteUndo(trx, { code: 'undo_asked', actor, text, write: undoes.key, by })
        },
      },
    })
    if (!act) throw new Error('an undo opens an incident')
    return act
  },
})

/**
 * Finds the write by its key. Otherwise throws a 404, which says whether retention removed the
 * write's incident.
 */
async function requireWrite(deps: ApiDeps, named: string): Promise<LoggedWrite> {
  const write = await writeByKey(deps.db, named)
  if (write) return write
  const { incidentId: id } = parseStepKey(named) ?? {}
  if (id === undefined) throw notFound(`write ${named}: the id of a write looks like ${key}`)
  if (!(await incidentById(deps.db, id))) throw await goneOrMissing(deps.db, id)
  throw notFound(`write ${named} in ${id}: only a call that changes something can be undone`)
}

type Asking = { name: string; actor: string }

/** Finds the write, if its rows allow the undo and the state is still as the write left it. */
async function requireAsked(deps: ApiDeps, write: LoggedWrite): Promise<UndoableWrite> {
  const undoable = await requireUndoable(deps, write)
  const look = await lookAtLeft(deps, undoable)
  if (!look.isAsLeft) throw movedOn(look, write)
  return undoable
}

/**
 * Records a refused undo in the incident of the write: the state has changed, or the write's rows
 * forbid the undo.
 */
async function noteRefusal<T>(
  deps: ApiDeps,
  write: LoggedWrite,
  { name, actor }: Asking,
  work: Promise<T>,
): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof EffectRefused) || !['conflict', 'state_changed'].includes(error.kind)) throw error
    const { tool } = write.started.metadata
    const text = `The undo of ${tool} that ${name} asked for was refused (${error.code}): ${error.message}`
    const note = { code: 'undo_refused' as const, actor, text, write: write.started.stepKey ?? '' }
    await deps.db.transaction().execute((trx) => noteUndo(trx, note))
    throw new Problem(409, error.code, error.message)
  }
}

function recordedOf({ finished }: LoggedWrite): UndoableWrite['undo'] {
  const undo = finished?.metadata.undo
  if (!undo || 'none' in undo)
    throw new Problem(409, 'UNDO_NOT_RECORDED', 'The row of this write does not record the state that it left.')
  return undo
}

function toUndoes({ started }: LoggedWrite, isWrong: boolean): Undoes {
  const { stepKey, incidentId: id, attempt, metadata } = started
  const { callId, tool, risk } = metadata
  return { key: stepKey ?? '', incidentId: id, attempt, callId, tool, risk, isWrong }
}

/** Requires the right to grade, because a write that is called wrong is a grade of its incident. */
async function requireGrader({ db }: ApiDeps, { incidentId: id }: Undoes, principal: Principal): Promise<void> {
  const types = typesOf(principal)
  const incident = await incidentById(db, id)
  if (permissionsOf(principal).includes('manage_incident') && (!types || types.includes(incident?.type ?? ''))) return
  throw new Problem(403, 'FORBIDDEN', `${principal.name} may not grade ${id}: leave "wrong" out.`)
}

/** Routes for the undo of a write: its call, whether it is allowed, and its execution. */
export const undoRoutes = [listEndpoint, showEndpoint, askEndpoint]
