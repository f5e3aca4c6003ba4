import { describe, expect, test } from '@jest/globals'
import { plainPolicy } from '../../../domain/refusal.ts'
import { findFreeTool } from '../../../safety/command/free-tools.ts'
import { fold } from '../../../safety/fold.ts'
import { type Call, judge } from '../../../safety/judge.ts'
import { toolFacts } from '../../../tools/registry.ts'
import { logOf, looked, partOfRow } from '../../support/events.ts'

const free = (text: string, cwd: string | null = null) => findFreeTool({ argv: text.split(' '), cwd })

test.each([
  ['git -C /srv/site show HEAD', 'git_show', { path: '/srv/site', revision: 'HEAD' }],
  ['git --no-pager -C /srv/site show -p', 'git_show', { path: '/srv/site', revision: 'HEAD' }],
  ['/usr/bin/git -C /srv/site show --stat abc123~2', 'git_show', { path: '/srv/site', revision: 'abc123~2' }],
  ['git -C /srv/site log -p -n 3', 'git_log', { path: '/srv/site' }],
  ['grep -rn refused /srv/web/logs', 'search_logs', { path: '/srv/web/logs', contains: ['refused'] }],
  ['grep -rn -C 3 a.*b /srv/web/log/app.log.1', 'search_logs', { path: '/srv/web/log/app.log.1' }],
  ['stat /srv/web/data/core.18231', 'fs_stat', { path: '/srv/web/data/core.18231' }],
  ['ls -la /srv/web/.env', 'fs_stat', { path: '/srv/web/.env' }],
  ['file -b /srv/web/data/core.1', 'fs_stat', { path: '/srv/web/data/core.1' }],
])('a tool answers without approval what %s asks', (text, tool, args) => {
  expect(free(text)).toEqual({ tool, arguments: args })
})

test('a repository where the command would run is named by its path', () => {
  expect(free('git show HEAD', '/srv/site')).toEqual({
    tool: 'git_show',
    arguments: { path: '/srv/site', revision: 'HEAD' },
  })
  expect(free('git show HEAD')).toBeNull()
  expect(free('git -C site show HEAD', '/srv')).toBeNull()
})

test.each([
  'git -c core.pager=sh -C /srv/site show HEAD',
  'git -C /srv/site -c alias.x=!sh x',
  'git -C /srv/site show --ext-diff HEAD',
  'git -C /srv/site show --textconv HEAD',
  'git -C /srv/site show HEAD -- a.txt',
  'git -C /srv/site show HEAD:../../etc/shadow:x y',
  'git -C /srv/* show HEAD',
  'git -C /srv/site log -p --all',
  'git -C /srv/site push',
  'grep -rn x /srv/web/data',
  'grep -f /etc/shadow -r x /srv/web/logs',
  'grep -rn x /srv/web/logs /etc',
  'grep -rn x /srv/web/log*',
  'stat /srv/a /srv/b',
  'stat --printf=%n /srv/a',
  'file -m /tmp/magic /srv/a',
  'rm -r /srv/web/logs',
])('if %s asks for more, no tool is named', (text) => {
  expect(free(text)).toBeNull()
})

describe('a command that a tool answers', () => {
  const node = { kind: 'node' as const, id: 'web-1' }
  const policy = plainPolicy('inc_00000000000000000000000001', node)
  const argv = ['git', '-C', '/srv/site', 'show', 'HEAD']
  const call: Call = {
    callId: 'c9_0',
    tool: 'exec',
    arguments: { on: 'web-1', argv },
    problem: null,
    prepared: {
      ok: true,
      preparation: {
        targets: [node],
        identity: { on: 'web-1', argv },
        stateFingerprint: '',
        dryRun: { possible: false, summary: '', details: {} },
      },
    },
  }
  const judged = (rows: Parameters<typeof logOf>, more: Partial<typeof policy> = {}) =>
    judge(
      call,
      toolFacts,
      fold(logOf(looked('c1_0', [node]), ...rows), 1, node),
      { ...policy, ...more },
      Date.parse('2026-11-21T02:01:00Z'),
    )

  test('wakes nobody: the tool is named with the values of the command', () => {
    expect(judged([])).toMatchObject({
      verdict: 'refuse',
      code: 'FREE_TOOL',
      hint: expect.stringContaining('git_show {"on":"web-1","path":"/srv/site","revision":"HEAD"}'),
    })
  })

  test('is asked about when it is proposed again', () => {
    const { actionDigest } = judged([])
    const refusal = partOfRow('call_judged', {
      callId: 'c2_0',
      tool: 'exec',
      arguments: call.arguments,
      verdict: 'refuse',
      code: 'FREE_TOOL',
      actionDigest,
    })
    const look = partOfRow('call_judged', {
      callId: 'c3_0',
      tool: 'git_show',
      arguments: { on: 'web-1' },
      verdict: 'run',
      code: 'READ',
    })
    expect(judged([refusal, look, looked('c3_0', [node])])).toMatchObject({ verdict: 'ask', code: 'UNPROVEN_COMMAND' })
  })

  test('is asked about if the tool is not offered', () => {
    expect(judged([], { offered: ['exec'] })).toMatchObject({ verdict: 'ask', code: 'UNPROVEN_COMMAND' })
  })
})
