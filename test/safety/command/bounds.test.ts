import { beforeAll, expect, test } from '@jest/globals'
import { judgeCommand } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

const judged = (text: string) => judgeCommand(text, { knownHosts: new Set(['db1']), knownNames: new Set(['web']) })

beforeAll(loadSql)

test.each([
  ['journalctl -f', 'unbounded_stream'],
  ['journalctl -fu nginx', 'unbounded_stream'],
  ['tail -f /var/log/syslog | grep x', 'unbounded_stream'],
  ['tail -f /var/log/syslog 2>/dev/null', 'unbounded_stream'],
  ['docker logs web -f', 'unbounded_stream'],
  ['kubectl logs -f web -n prod', 'unbounded_stream'],
  ['iostat 1', 'unbounded_stream'],
  ['ping db1', 'unbounded_stream'],
  ['watch -n 1 "df -h | head"', 'unbounded_stream'],
  ['top', 'unbounded_stream'],
  ['less /var/log/syslog', 'pager'],
  ['tcpdump -i eth0', 'unbounded_stream'],
  ['journalctl -f -n 200', 'unbounded_stream'],
  ['journalctl --foll -u nginx', 'unbounded_stream'],
  ['tail --fol /var/log/syslog', 'unbounded_stream'],
  ['tail -F -n 5 /var/log/syslog', 'unbounded_stream'],
  ['kubectl logs -f web --tail 20', 'unbounded_stream'],
  ['kubectl logs --follow=true web', 'unbounded_stream'],
  ['kubectl get pods -w -n prod', 'unbounded_stream'],
  ['kubectl rollout status deploy/web', 'unbounded_stream'],
  ['docker logs -f --since 10m web', 'unbounded_stream'],
  ['dmesg --foll', 'unbounded_stream'],
  ['iotop', 'unbounded_stream'],
  ['cat /var/log/syslog | less', 'pager'],
  ['docker exec -it web ls /', 'tty_flag'],
  ["bash -c 'journalctl -f'", 'unbounded_stream'],
  ['env LC_ALL=C tail -f "/var/log/my log"', 'unbounded_stream'],
  ['ssh db1 tail -f /var/log/syslog', 'unbounded_stream'],
])('an endless read asks, and names its bounded form, which runs: %s', (text, bound) => {
  const verdict = judged(text)
  expect(verdict).toMatchObject({ verdict: 'ask', code: 'UNBOUNDED', effect: 'read', bound })
  expect(judged(verdict.rewrite!)).toMatchObject({ verdict: 'run', bound: null })
})

test.each([
  ['psql', 'interactive_repl'],
  ['mysql', 'interactive_repl'],
  ['python3', 'interactive_repl'],
  ['bash', 'interactive_repl'],
  ['ssh db1', 'interactive_repl'],
  ['vim /etc/hosts', 'pager'],
  ['cat /dev/zero', 'unbounded_stream'],
])('a read without a bounded form gets none: %s', (text, bound) => {
  expect(judged(text)).toMatchObject({ verdict: 'ask', bound, rewrite: null })
})

test('a timeout bounds a stream, if it ends it soon and for certain', () => {
  expect(judged('timeout 5 journalctl -f').verdict).toBe('run')
  for (const text of ['timeout 0 journalctl -f', 'timeout 1d journalctl -f', 'timeout -s 0 5 journalctl -f']) {
    expect(judged(text).verdict).toBe('ask')
  }
})

test('a rewrite never includes a write', () => {
  expect(judged('rm x; journalctl -f')).toMatchObject({ code: 'UNKNOWN_COMMAND', rewrite: null })
  expect(judged('sudo journalctl -f')).toMatchObject({ code: 'ROOT', rewrite: null, bound: 'unbounded_stream' })
})
