import { expect, test } from '@jest/globals'
import { describeEvent } from '../../cli/incidents/describe-event.ts'
import type { IncidentEvent } from '../../domain/event.ts'

const started = (tool: string, args: Record<string, unknown>) =>
  describeEvent({ kind: 'tool_started', metadata: { tool, arguments: args } } as unknown as IncidentEvent)
const finished = (data: unknown) =>
  describeEvent({
    kind: 'tool_finished',
    metadata: { tool: 'exec', arguments: {}, outcome: 'done', result: { ok: true, data }, durationMs: 7 },
  } as unknown as IncidentEvent)

test.each([
  ['converge_shard', { id: 'db-osl-1', reason: 'it lags' }, 'converge_shard db-osl-1 starts'],
  ['pkg_install', { on: 'web-1', packages: ['tariffs'] }, 'pkg_install web-1: tariffs starts'],
  [
    'exec',
    { on: 'web-1', argv: ['rm', '--', '/srv/log/trace.log.1'] },
    'exec web-1: rm -- /srv/log/trace.log.1 starts',
  ],
  ['exec', { argv: ['uptime'] }, 'exec uptime starts'],
  ['exec', { on: 'web-1', argv: ['rm', 'x'.repeat(200)] }, `exec web-1: rm ${'x'.repeat(67)}… starts`],
])('a call of %s is told with what it is about: %j', (tool, args, told) => {
  expect(started(tool, args)).toBe(told)
})

test('of an answer what fits in a line is told, and what is empty is left out', () => {
  expect(finished({ device: 'web-1', exit_code: 0, stdout: '', stderr: '', cmd: 'a\nb' })).toBe(
    'exec done: device web-1, exit_code 0 (7 ms)',
  )
})
