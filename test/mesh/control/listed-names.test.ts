import { beforeAll, describe, expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { send } from '../../../activities/send.ts'
import { append } from '../../../db/log/append.ts'
import { eventByStepKey, eventsOf } from '../../../db/log/events.ts'
import { agentActor, type IncidentEvent } from '../../../domain/event.ts'
import { plainPolicy } from '../../../domain/refusal.ts'
import type { Preparation } from '../../../domain/tool.ts'
import { fold } from '../../../safety/fold.ts'
import { judge } from '../../../safety/judge.ts'
import { toolFacts } from '../../../tools/registry.ts'
import { announced } from '../../support/announced.ts'
import { corePort } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'
import { answeredWith } from '../../support/events.ts'
import { realAgent, toolNamed, useMeshApi } from '../../support/mesh-api.ts'

// What goes through: a look on a real agent, its row, the judge, core API, signature, the agent's
// guard, and the program.

const api = useMeshApi()
const [on, elsewhere] = ['node-osl-1', 'node-osl-2']

/**
 * Containers as docker(1) lists them: the command of one is text of a stranger that speaks of
 * another.
 */
const docker = `#!/bin/sh
case "$1" in
  ps) echo 'CONTAINER ID   IMAGE     COMMAND                  CREATED        STATUS        PORTS     NAMES'
      echo '3f2a1b4c5d6e   nginx     "run NAMES    injected"   2 hours ago    Up 2 hours    80/tcp    web' ;;
  logs) echo 'CONTAINER ID   IMAGE     COMMAND   CREATED   STATUS   PORTS   NAMES'
      echo '000000000000   x         x         x         x        x       injected' ;;
  exec) shift; echo "in $*" ;;
esac
`

type Call = { on: string; argv: string[] }
const node = { kind: 'node' as const, id: on }

/** The call through the activity that sends it, into the log of this incident. */
async function ran(incidentId: string, args: Call) {
  const stepKey = await announced(api.db, incidentId, 'exec', args, null, 'read')
  const event = (await eventByStepKey(api.db, stepKey, 'tool_started')) as IncidentEvent<'tool_started'>
  const place = { incidentId, attempt: 1, turn: event.turn ?? 0, call: 0 }
  const signal = new AbortController().signal
  const deps = { db: api.db, core: corePort(api), patienceMs: 1_000 }
  const finished = (await new MockActivityEnvironment().run(() =>
    send(deps, place, event, { again: false, signal }),
  )) as IncidentEvent<'tool_finished'>
  return finished.metadata
}

async function judged(incidentId: string, args: Call, attempt = 1) {
  const events = await eventsOf(api.db, incidentId)
  const state = fold(events, attempt, node)
  const preparation: Preparation = {
    targets: [{ kind: 'node', id: args.on }],
    identity: args,
    stateFingerprint: '',
    dryRun: { possible: false, summary: '', details: {} },
  }
  const call = {
    callId: 'c99_0',
    tool: 'exec',
    arguments: args,
    problem: null,
    prepared: { ok: true, preparation } as const,
  }
  return judge(call, toolFacts, state, plainPolicy(incidentId, node), Date.now())
}

beforeAll(async () => {
  for (const id of [on, elsewhere]) await realAgent(api, id, { mode: 'user' }, { docker })
})

const look = { on, argv: ['docker', 'exec', 'web', 'df', '-h'] }

describe('a container that was listed on a device in this attempt', () => {
  test('is read without approval there, as the judge and the device agree, and before the listing it needs one', async () => {
    const incidentId = await claimedIncident(api.db)
    await ran(incidentId, { on, argv: ['uptime'] })
    expect(await judged(incidentId, look)).toMatchObject({ verdict: 'ask' })
    expect((await ran(incidentId, look)).result).toMatchObject({
      ok: false,
      error: { details: { rule: 'approval_required' } },
    })

    expect((await ran(incidentId, { on, argv: ['docker', 'ps'] })).listed).toEqual({
      on: node,
      names: ['docker::3f2a1b4c5d6e', 'docker::web'],
    })
    expect(await judged(incidentId, look)).toMatchObject({ verdict: 'run', code: 'READ_COMMAND' })
    const { result } = await ran(incidentId, look)
    expect(result).toMatchObject({ ok: true, data: { stdout: 'in web df -h\n', approval_status: 'auto_approved' } })
  })

  test('is prepared without a question', async () => {
    const incidentId = await claimedIncident(api.db)
    await ran(incidentId, { on, argv: ['docker', 'ps'] })
    const stepKey = `${incidentId}.1:99:tool_started:0`
    await api.db.transaction().execute((trx) =>
      append(trx, incidentId, 1, {
        kind: 'model_answered',
        actor: agentActor,
        turn: 99,
        detail: '',
        stepKey: `${incidentId}.1:99:model_answered:0`,
        metadata: answeredWith([{ id: 'c99_0', tool: 'exec', arguments: look, problem: null }]),
      }),
    )
    const context = { core: corePort(api), incidentId, stepKey, ifMatch: null }
    const found = await toolNamed('exec').prepare?.(look as never, context)
    expect(found as Preparation).not.toHaveProperty('asks')
  })

  test.each([
    ['on another device', { on: elsewhere, argv: look.argv }],
    ['by a program that changes it', { on, argv: ['docker', 'exec', 'web', 'rm', '-r', '/srv/x'] }],
    ['under a name that only its command speaks of', { on, argv: ['docker', 'exec', 'injected', 'df', '-h'] }],
    ['by another engine', { on, argv: ['podman', 'exec', 'web', 'df', '-h'] }],
  ])('needs an approval %s', async (_, call) => {
    const incidentId = await claimedIncident(api.db)
    await ran(incidentId, { on, argv: ['docker', 'ps'] })
    await ran(incidentId, { on: elsewhere, argv: ['uptime'] })
    expect(await judged(incidentId, call)).toMatchObject({ verdict: 'ask' })
    expect((await ran(incidentId, call)).result).toMatchObject({ ok: false })
  })

  test('needs an approval in a later attempt', async () => {
    const incidentId = await claimedIncident(api.db)
    await ran(incidentId, { on, argv: ['docker', 'ps'] })
    expect((await judged(incidentId, look, 2)).verdict).not.toBe('run')
  })

  test('is not one whose name a log prints', async () => {
    const incidentId = await claimedIncident(api.db)
    expect(await ran(incidentId, { on, argv: ['docker', 'logs', '--tail', '5', 'web'] })).not.toHaveProperty('listed')
  })
})
