import { describe, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { plainPolicy } from '../../domain/refusal.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { categoryRule, outcomeRule } from '../../safety/ending.ts'
import { fold } from '../../safety/fold.ts'
import type { Policy } from '../../safety/ruling.ts'
import { changedBy, logOf, row, verified, wrote } from '../support/events.ts'

const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const vm: ResourceRef = { kind: 'vm', id: 'vm-1' }
const over = { total: 1, firing: 0, unknown: 0, endless: 0, endedForSeconds: 300, quietSeconds: 120 }
const firing = { ...over, firing: 1, endedForSeconds: null }
const policy = plainPolicy('inc_00000000000000000000000001', shard)

/** A read of a resource that tells how it is. */
const read = (thing: ResourceRef, health: string) =>
  row('tool_finished', {
    callId: 'c1_0',
    tool: 'get_shard',
    arguments: {},
    effect: 'read',
    targets: [thing],
    outcome: 'done',
    result: { ok: true, data: {}, meta: {} },
    body: null,
    discovered: [{ ...thing, name: thing.id, aliases: [], seen: true, health }],
  })
const alertBegan = row('alert_received', { status: 'firing', fingerprint: 'f' })
const alertEnded = row('alert_received', { status: 'resolved', fingerprint: 'f' })

const state = (rows: IncidentEvent[]) => fold(logOf(...rows), 1, shard)
const ruled = (outcome: string, rows: IncidentEvent[], more: Partial<Policy> = {}) =>
  outcomeRule(outcome, state(rows), { ...policy, alerts: over, ...more })

describe('a firing alert is not over', () => {
  test.each(['no_fault', 'self_resolved'])(
    '%s is refused while an alert fires, and the alternative is named',
    (outcome) => {
      const refused = ruled(outcome, [read(shard, 'nominal')], { alerts: firing })
      expect(refused).toMatchObject({ code: 'STILL_FIRING', hint: expect.stringContaining('no_fault_found') })
    },
  )

  test('without any alert nothing resolved itself', () => {
    const none = { ...over, total: 0, endedForSeconds: null }
    expect(ruled('self_resolved', [], { alerts: none })?.code).toBe('NO_ALERT')
    expect(ruled('no_fault', [], { alerts: none })).toBeNull()
  })

  test.each(['no_fault', 'self_resolved'])('%s is kept until the alerts were quiet for long enough', (outcome) => {
    const kept = ruled(outcome, [], { alerts: { ...over, endedForSeconds: 20 } })
    expect(kept).toMatchObject({ code: 'NOT_QUIET_YET', details: { waitSeconds: 100 } })
    expect(ruled(outcome, [])).toBeNull()
  })

  test('an alert of a sender without ends never shows that it is over', () => {
    expect(ruled('self_resolved', [], { alerts: { ...over, endless: 1 } })?.code).toBe('STILL_FIRING')
  })

  test('no_fault of an alert whose sender has no ends needs a nominal read of its resource, and a person if it is critical', () => {
    const endless = { ...over, endless: 1, endedForSeconds: null }
    const noFault = (rows: IncidentEvent[], more: Partial<Policy> = {}) =>
      ruled('no_fault', rows, { alerts: endless, ...more })
    const refused = { code: 'STILL_FIRING', hint: expect.stringContaining('no_fault_found') }
    expect(noFault([])).toMatchObject({ ...refused, hint: expect.stringContaining('Read shard:db-osl-1') })
    expect(noFault([read(shard, 'unknown')])).toMatchObject(refused)
    expect(noFault([read(vm, 'nominal')])).toMatchObject(refused)
    expect(noFault([read(shard, 'nominal'), read(shard, 'unknown')])).toMatchObject(refused)
    expect(noFault([read(shard, 'nominal')])).toBeNull()
    expect(noFault([], { resource: null })).toMatchObject(refused)
    const critical = { alerts: { ...endless, isCritical: true } }
    expect(noFault([read(shard, 'nominal')], critical)).toMatchObject({
      ...refused,
      reason: expect.stringContaining('a person decides'),
    })
  })

  test.each(['no_fault', 'self_resolved'])(
    '%s of an alert whose end proves nothing needs a nominal read',
    (outcome) => {
      const gone = { ...over, unproven: 1, doubt: 'the sender reported an end that proves nothing (Paused)' }
      const refused = { code: 'STILL_FIRING', reason: expect.stringContaining('Paused') }
      expect(ruled(outcome, [], { alerts: gone })).toMatchObject(refused)
      expect(ruled(outcome, [], { alerts: gone, resource: null })).toMatchObject(refused)
      expect(ruled(outcome, [read(shard, 'nominal')], { alerts: gone })).toBeNull()
    },
  )

  test('an end that proves nothing is no proof of a repair', () => {
    const unproven = [wrote('c1_0', [shard]), verified('c1_0', 'unproven')]
    const noEnd = row('alert_received', { status: 'resolved', endReason: 'MissingSeries' })
    expect(ruled('repaired', [...unproven, noEnd], { resource: null })?.code).toBe('REPAIR_NOT_VERIFIED')
    expect(ruled('repaired', [...unproven, alertEnded], { resource: null })).toBeNull()
    const gone = { ...over, unproven: 1 }
    expect(ruled('repaired', [...unproven, alertEnded], { resource: null, alerts: gone })?.code).toBe(
      'REPAIR_NOT_VERIFIED',
    )
  })

  test('after a crowd of ends only the resource itself shows the recovery', () => {
    const crowd = { ...over, unknown: 1 }
    expect(ruled('no_fault', [], { alerts: crowd })?.code).toBe('STILL_FIRING')
    expect(ruled('no_fault', [read(shard, 'nominal')], { alerts: crowd })).toBeNull()
  })

  test.each(['no_fault', 'self_resolved'])('%s of a resource that was seen unhealthy is refused', (outcome) => {
    expect(ruled(outcome, [read(shard, 'degraded')])?.code).toBe('STILL_DEGRADED')
    expect(ruled(outcome, [read(shard, 'unknown')])).toBeNull()
  })
})

describe('a repair', () => {
  const write = wrote('c2_0', [shard])

  test.each([
    ['held', [write, verified('c2_0', 'held')], null],
    ['not held', [write, verified('c2_0', 'not_held')], 'REPAIR_NOT_VERIFIED'],
    ['not read', [write, verified('c2_0', 'open')], 'FSM_BLOCKED'],
    ['unproven', [write, verified('c2_0', 'unproven')], 'REPAIR_NOT_VERIFIED'],
    [
      'unproven, the resource was ill before it and is nominal after it',
      [read(shard, 'degraded'), write, verified('c2_0', 'unproven'), read(shard, 'nominal')],
      null,
    ],
    [
      'unproven, what it wrote to was ill before it and is nominal after it',
      [read(vm, 'down'), wrote('c2_0', [vm]), verified('c2_0', 'unproven'), read(vm, 'nominal')],
      null,
    ],
    [
      'unproven, the resource was nominal before it and is so after it',
      [read(shard, 'nominal'), write, verified('c2_0', 'unproven'), read(shard, 'nominal')],
      'REPAIR_NOT_VERIFIED',
    ],
    [
      'unproven, the resource is nominal and nobody had looked before',
      [write, verified('c2_0', 'unproven'), read(shard, 'nominal')],
      'REPAIR_NOT_VERIFIED',
    ],
    [
      'unproven, one thing was ill before it and another is nominal after it',
      [read(vm, 'down'), write, verified('c2_0', 'unproven'), read(shard, 'nominal')],
      'REPAIR_NOT_VERIFIED',
    ],
    [
      'unproven, the resource was nominal before',
      [read(shard, 'nominal'), write, verified('c2_0', 'unproven')],
      'REPAIR_NOT_VERIFIED',
    ],
    ['unproven, then every alert ended', [write, verified('c2_0', 'unproven'), alertEnded], null],
    [
      'unproven, an alert that began after it ended',
      [write, verified('c2_0', 'unproven'), alertBegan, alertEnded],
      'REPAIR_NOT_VERIFIED',
    ],
    [
      'unproven, an alert that fired before it ended',
      [alertBegan, write, verified('c2_0', 'unproven'), alertEnded],
      null,
    ],
    ['unproven, every alert ended before', [alertEnded, write, verified('c2_0', 'unproven')], 'REPAIR_NOT_VERIFIED'],
    [
      'held, and the resource is degraded after it',
      [write, verified('c2_0', 'held'), read(shard, 'degraded')],
      'STILL_DEGRADED',
    ],
    ['held, and the resource was degraded before it', [read(shard, 'degraded'), write, verified('c2_0', 'held')], null],
    [
      'of two targets one did not hold',
      [wrote('c2_0', [vm]), verified('c2_0', 'not_held'), wrote('c3_0', [shard]), verified('c3_0', 'held')],
      'REPAIR_NOT_VERIFIED',
    ],
    [
      'a second try at the same target held',
      [wrote('c2_0', [vm]), verified('c2_0', 'not_held'), wrote('c3_0', [vm]), verified('c3_0', 'held')],
      null,
    ],
    ['nothing was written', [], 'NOTHING_WRITTEN'],
  ])('%s', (_what, rows, code) => {
    expect(ruled('repaired', rows as IncidentEvent[])?.code ?? null).toBe(code)
  })

  test('stopping the sender of the alert does not show that the fault is over', () => {
    const silence = row('tool_started', {
      ...(wrote('c2_0', [shard]) as IncidentEvent<'tool_started'>).metadata,
      tool: 'exec',
      arguments: { on: 'n', argv: ['systemctl', 'stop', 'prometheus-alertmanager'], reason: 'x' },
    })
    expect(ruled('repaired', [silence, verified('c2_0', 'unproven'), alertEnded])?.code).toBe('REPAIR_NOT_VERIFIED')
  })

  test('a repair that held may end while its alert still fires, because it is watched', () => {
    expect(ruled('repaired', [write, verified('c2_0', 'held')], { alerts: firing })).toBeNull()
  })
})

describe('a repair changed something', () => {
  const held = (callId: string, changed: string[] | null) => [
    wrote(callId, [shard]),
    changedBy(callId, [shard], changed),
    verified(callId, 'held'),
  ]
  const was = read(shard, 'nominal')
  const failed = [wrote('c2_0', [shard]), changedBy('c2_0', [shard], null), verified('c2_0', 'not_held')]

  test.each([
    ['nothing', [was, ...held('c2_0', [])], 'NOTHING_CHANGED'],
    ['nothing, twice', [was, ...held('c2_0', []), ...held('c3_0', [])], 'NOTHING_CHANGED'],
    ['nothing, of what was ill before', [read(shard, 'degraded'), ...held('c2_0', []), was], 'NOTHING_CHANGED'],
    ['something, of what was nominal before and after', [was, ...held('c2_0', ['restarted']), was], null],
    ['something, and nothing by a second write', [was, ...held('c2_0', ['restarted']), ...held('c3_0', [])], null],
    ['nobody knows what', [was, ...held('c2_0', null)], null],
    [
      'nobody knows what by one that failed, and nothing by a second',
      [was, ...failed, ...held('c3_0', [])],
      'NOTHING_CHANGED',
    ],
    [
      'nobody knows what by one that failed, and what was ill is nominal',
      [read(shard, 'degraded'), ...failed, ...held('c3_0', []), read(shard, 'nominal')],
      null,
    ],
  ])('it changed %s', (_what, rows, code) => {
    expect(ruled('repaired', rows, { alerts: firing })?.code ?? null).toBe(code)
    expect(categoryRule('mitigated', state(rows), { ...policy, alerts: firing })?.code ?? null).toBe(code)
  })

  test('after a write that changed nothing the hint names two endings: the alert goes on, or nothing is wrong', () => {
    const hint = ruled('repaired', [was, ...held('c2_0', [])], { alerts: firing })?.hint
    expect(hint).toContain('alert_goes_on')
    expect(hint).toContain('no_fault_found')
    expect(ruled('self_resolved', [was, ...held('c2_0', [])])).toBeNull()
  })

  test.each([
    ['a write held', held('c2_0', []), firing, null],
    ['a write is unproven', [wrote('c2_0', [shard]), verified('c2_0', 'unproven')], firing, null],
    ['a write did not hold', [wrote('c2_0', [shard]), verified('c2_0', 'not_held')], firing, 'NO_WRITE_HELD'],
    ['nothing was written', [was], firing, 'NO_WRITE_HELD'],
    ['the alert has ended', held('c2_0', ['restarted']), over, 'NO_WRITE_HELD'],
  ])('alert_goes_on, when %s', (_what, rows, alerts, code) => {
    expect(categoryRule('alert_goes_on', state(rows), { ...policy, alerts })?.code ?? null).toBe(code)
  })
})

describe('other endings', () => {
  test('only a question ends as answered', () => {
    expect(ruled('answered', [], { isQuestion: true })).toBeNull()
    expect(ruled('no_fault', [], { isQuestion: true })?.code).toBe('IS_A_QUESTION')
    expect(ruled('answered', [])?.code).toBe('NO_QUESTION')
  })

  test.each([
    ['nothing was written', [], 'NOT_MITIGATED'],
    ['a write did not hold', [wrote('c2_0', [vm]), verified('c2_0', 'not_held'), read(vm, 'nominal')], 'NOT_MITIGATED'],
    ['it held, as for a repair', [wrote('c2_0', [vm]), verified('c2_0', 'held')], null],
    [
      'a command is unproven, and the disk was full before it and is not after it',
      [read(shard, 'degraded'), wrote('c2_0', [shard]), verified('c2_0', 'unproven'), read(shard, 'nominal')],
      null,
    ],
    [
      'a command is unproven, and an alert ended',
      [wrote('c2_0', [vm]), verified('c2_0', 'unproven'), alertEnded],
      null,
    ],
    [
      'a command is unproven, and nothing became better',
      [wrote('c2_0', [vm]), verified('c2_0', 'unproven'), read(shard, 'nominal')],
      'NOT_MITIGATED',
    ],
    [
      'it held for what it touched, and the resource of the incident is left ill',
      [wrote('c2_0', [vm]), verified('c2_0', 'held'), read(vm, 'nominal'), read(shard, 'degraded')],
      null,
    ],
    [
      'it held, and what it touched is ill',
      [wrote('c2_0', [vm]), verified('c2_0', 'held'), read(vm, 'degraded')],
      'NOT_MITIGATED',
    ],
    [
      'it held, and what it touched is well',
      [wrote('c2_0', [vm]), verified('c2_0', 'held'), read(vm, 'nominal')],
      null,
    ],
  ])('mitigated, when %s', (_what, rows, code) => {
    const alerts = { ...policy, alerts: over }
    expect(categoryRule('mitigated', state(rows as IncidentEvent[]), alerts)?.code ?? null).toBe(code)
  })

  test('every other category needs only a read', () => {
    expect(categoryRule('no_tool', state([]), policy)).toBeNull()
    expect(categoryRule(undefined, state([]), policy)).toBeNull()
  })
})
