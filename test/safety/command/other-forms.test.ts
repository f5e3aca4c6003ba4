import { beforeAll, describe, expect, test } from '@jest/globals'
import { plainPolicy } from '../../../domain/refusal.ts'
import { type CommandContext, judgeCommand } from '../../../safety/command/judge.ts'
import { nameOtherForm } from '../../../safety/command/other-forms.ts'
import type { Word } from '../../../safety/command/parse.ts'
import { fold } from '../../../safety/fold.ts'
import { judge } from '../../../safety/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { toolFacts } from '../../../tools/registry.ts'
import { logOf, looked } from '../../support/events.ts'

const context: CommandContext = { knownHosts: new Set(['db1']), knownNames: new Set(['web']) }
const judged = (text: string) => judgeCommand(text, context)
const words = (text: string): Word[] =>
  text.split(' ').map((each) => ({ text: each, literal: true, quoting: 'bare', pattern: null }))

beforeAll(loadSql)

describe('a form with the same answer', () => {
  test.each([
    ["sqlite3 /srv/app.db 'select 1'", "sqlite3 -readonly /srv/app.db 'select 1'"],
    ['nstat -az TcpExtListenDrops', 'nstat -s -az TcpExtListenDrops'],
    ['curl -sL http://localhost/health', 'curl -s http://localhost/health'],
    ['curl --location http://localhost/health', 'curl http://localhost/health'],
    ['docker exec web curl -s http://localhost/health', 'docker exec web curl -q -s http://localhost/health'],
    ['docker exec -it web dig db1', 'docker exec web dig -r db1'],
    ['dnf history list', 'dnf -C history list'],
    ['docker exec web mongosh --eval "rs.status()"', "docker exec web mongosh --norc --eval 'rs.status()'"],
  ])('is offered for %j: %j', (text, rewrite) => {
    expect(judged(text)).toMatchObject({ verdict: 'ask', rewrite })
    expect(judged(rewrite).verdict).toBe('run')
  })

  test.each([
    "sqlite3 /srv/app.db 'delete from x'",
    'curl -L -X POST http://localhost/health',
    'curl -L http://elsewhere.example/',
    'sqlite3 $db "select 1"',
    'dnf install x',
    // Its user's settings are read before an option that is not the first word.
    'docker exec web rm x',
  ])('is not offered for %j, which does more', (text) =>
    expect(judged(text)).toMatchObject({ verdict: 'ask', rewrite: null }),
  )

  test('needs its option as the first word if settings are read before', () => {
    expect(judged('docker exec web curl -s -q http://localhost/health').verdict).toBe('ask')
  })

  test('is added by code, and the row says so', () => {
    const node = { kind: 'node' as const, id: 'web-1' }
    const state = fold(logOf(looked('c0_0', [node])), 1, node)
    const call = {
      callId: 'c1_0',
      tool: 'exec',
      arguments: { on: node.id, argv: ['nstat', '-az'] },
      problem: null,
      prepared: null,
    }
    const ruling = judge(call, toolFacts, state, plainPolicy('inc_1', node), Date.parse('2026-11-21T02:00:10Z'))
    const to = ['bash', '-c', 'nstat -s -az']
    expect(ruling).toMatchObject({ verdict: 'run', code: 'READ_COMMAND', arguments: { argv: to } })
    expect(ruling.corrected).toEqual([{ code: 'OPTION_ADDED', field: 'argv', from: ['nstat', '-az'], to }])
  })
})

describe('a form with another answer is named in the reason', () => {
  test.each([
    ['kubectl describe pod web-0', 'kubectl get pod web-0 -o wide; kubectl events --for pod/web-0'],
    [
      'kubectl -n shop describe deploy web',
      'kubectl -n shop get deploy web -o wide; kubectl -n shop events --for deploy/web',
    ],
    [
      'kubectl describe certificate web -n shop',
      "kubectl -n shop get certificate web -o jsonpath='{.status.conditions}'",
    ],
    ['kubectl get cm web -o yaml', "kubectl get cm web -o jsonpath='{.status.conditions}'"],
    ['docker inspect web', "docker inspect -f '{{json .State}}' web"],
    ['cat /etc/shadow', 'stat /etc/shadow'],
    ['helm get values web', 'helm status web; helm history web'],
    ['argocd app diff web', 'argocd app list; argocd app history web'],
    ['terraform plan', 'terraform state list'],
    ['pcs config', 'pcs status --full; pcs constraint list'],
    ['py-spy dump --pid 12', 'top -b -n 1 -p 12; cat /proc/12/status'],
    ['docker compose config', 'docker compose ps'],
  ])('%j: %j, which runs', (asked, instead) => {
    expect(nameOtherForm(words(asked))).toBe(instead)
    const { verdict, reason } = judged(asked)
    expect([verdict, reason.includes(`; unasked runs: ${instead}`)]).toEqual(['ask', true])
    // Secrets even by size have no form that runs.
    if (asked !== 'cat /etc/shadow') expect([instead, judged(instead).verdict]).toEqual([instead, 'run'])
  })

  test.each([
    ['sudo fdisk -l', 'fdisk -l'],
    ['sudo netstat -p | grep ceph', 'netstat -p'],
    ['sudo -u postgres df -h', 'df -h'],
  ])('without sudo it may see less: %j names %j', (asked, instead) => {
    const { verdict, reason, rewrite } = judged(asked)
    expect([verdict, reason.endsWith(`; unasked runs: ${instead}`), rewrite]).toEqual(['ask', true, null])
    expect(judged(instead).verdict).toBe('run')
  })

  test.each(['sudo rm x', 'sudo cat /etc/shadow', 'sudo git status'])(
    'and not if it would ask without sudo too: %s',
    (asked) => expect(judged(asked).reason).not.toContain('unasked'),
  )

  test('and for git in a container the tools that read repositories', () => {
    expect(judged('docker exec web git show HEAD').reason).toContain('the tools git_show and git_log')
  })

  test('and none for a forbidden command', () => {
    expect(judged('rm -rf /').reason).not.toContain('unasked')
  })
})
