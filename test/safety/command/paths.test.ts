import { beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { decide, type Finding } from '../../../safety/command/analysis.ts'
import type { Grammar } from '../../../safety/command/grammar.ts'
import { judgeCommand } from '../../../safety/command/judge.ts'
import { compile, read } from '../../../safety/command/options.ts'
import { unboundedByGrammar, unboundedByName } from '../../../safety/command/outputs.ts'
import type { Word } from '../../../safety/command/parse.ts'
import { pathIndex, pathOf } from '../../../safety/command/path-index.ts'
import { leadsTo, normalise, pathFinding, pathList } from '../../../safety/command/paths.ts'
import { globExpression, globsMeet } from '../../../safety/command/patterns.ts'
import { hiddenPaths, measuredPaths, openTrees, publicPaths } from '../../../safety/command/secret-paths.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

describe('paths', () => {
  describe('paths', () => {
    const literal = (text: string) => ({ text, literal: true, quoting: 'bare' as const, pattern: null })
    const pattern = (text: string) => ({ text, literal: false, quoting: 'bare' as const, pattern: text })

    test.each([
      ['/etc//./ssh/../shadow', ['/etc/shadow']],
      ['/../../etc', ['/etc']],
      ['~/x', ['/root/x']],
      ['~bob/x', ['/home/bob/x']],
      ['$HOME/x', ['/root/x']],
      ['a/../b', ['b']],
      ['a/..', ['.']],
      ['../../etc/shadow', ['../../etc/shadow', '/etc/shadow']],
    ])('a path is the same however it is spelled: %s', (path, expected) => expect(normalise(path)).toEqual(expected))

    test('a relative path leads where cd went', () => expect(normalise('x', ['/etc'])).toEqual(['x', '/etc/x']))

    test.each([
      '/etc/shadow',
      '/etc/shadow-',
      '~/.ssh',
      '.ssh/id_rsa',
      'a/b.pem',
      '/proc/1/environ',
      '/proc/self/root/etc/passwd',
      '/dev/sda',
      '.env',
      '~/.bash_history',
      '/var/lib/x/secrets/y',
      '/srv/app/.env.production',
      '/x/.nightshift/db',
      '/srv/app/.env~',
      '/srv/app/.env.swp',
      '/srv/app/#secrets.yml#',
      '/srv/app/.#id_rsa',
      '/srv/app/.passwords.swp',
      '/etc/shadow.dpkg-old',
      '/var/backups/shadow.bak',
      '/srv/app/master.key.gz',
      '/srv/app/.ENV',
      '/etc/ceph/ceph.client.admin.keyring',
      '/var/lib/ceph/osd/ceph-0/keyring',
      '/etc/corosync/authkey',
      '/etc/postfix/sasl_passwd',
      '/etc/gitlab/gitlab.rb',
      '/srv/gitlab/config/secrets.yml',
      '/var/lib/tailscale/tailscaled.state',
      '/var/lib/tor/hidden_service/hs_ed25519_secret_key',
      '/root/.config/sops/age/keys.txt',
      '/root/.cargo/credentials.toml',
      '/home/bob/.gradle/gradle.properties',
      '/etc/sssd/sssd.conf',
      '/etc/iscsi/iscsid.conf',
      '/etc/zabbix/agent.psk',
      '/etc/wireguard/wg0.conf',
      '/etc/chrony/chrony.keys',
      '/root/.restic-password',
      '/root/.config/hcloud/cli.toml',
      '/home/bob/.nuget/NuGet.Config',
      '/srv/terraform/prod.tfvars',
      '/var/lib/kubelet/kubeconfig',
      '/home/bob/.config/containers/auth.json',
      '/etc/snmp/snmpd.conf',
      '/etc/freeradius/3.0/clients.conf',
      '/etc/grafana/grafana.ini',
      '/var/lib/rabbitmq/.erlang.cookie',
      '/home/bob/.mozilla/firefox/x/logins.json',
      '/home/bob/.local/share/keyrings/login.keyring',
      '/run/credentials/app.service/token',
      '/var/lib/cloud/instance/user-data.txt',
      '/var/lib/systemd/coredump/core.app.zst',
    ])('holds secrets: %s', (path) => expect(pathFinding(literal(path), [], 'prints')).toBe('secret'))

    test.each([
      '/etc/passwd',
      '/var/log/syslog',
      '/etc/ssl/certs/ca.pem',
      '/proc/loadavg',
      '/dev/null',
      '/etc/ssh/sshd_config',
      '/etc/ceph/ceph.conf',
      '/etc/corosync/corosync.conf',
      '/etc/iscsi/initiatorname.iscsi',
      '/etc/hosts.bak',
      '/etc/nginx/nginx.conf.dpkg-dist',
      '/var/log/syslog.2.gz',
      '/var/log/nginx/access.log-20260101.gz',
      '/etc/prometheus/prometheus.yml',
      '/etc/mysql/my.cnf',
    ])('holds none: %s', (path) => expect(pathFinding(literal(path), [], 'prints')).toBeNull())

    test('a directory above secrets counts for a recursive read', () => {
      for (const path of ['/', '/etc', '/root', '/home', '/home/bob', '/proc/1', '.', '..']) {
        expect(pathFinding(literal(path), [], 'prints tree')).toBe('holds secrets')
      }
      expect(pathFinding(literal('/var/log'), [], 'prints tree')).toBeNull()
    })

    test('a pattern counts as everything it could become', () => {
      for (const path of [
        '/etc/sh*',
        '/etc/shad?w',
        '/e*/shadow',
        '/proc/*/e*',
        '/home/*/.ssh/*',
        '/etc/[s]hadow',
        '*',
      ]) {
        expect(pathFinding(pattern(path), [], 'prints')).toBe('secret')
      }
      for (const path of ['/var/log/*.log', '/proc/*/status', '/etc/*release']) {
        expect(pathFinding(pattern(path), [], 'prints')).toBeNull()
      }
    })

    test('two patterns meet where one path fits both', () => {
      expect(globsMeet('/a/*c', '/a/b*')).toBe(true)
      expect(globsMeet('/a/**/x', '/a/b/c/*')).toBe(true)
      expect(globsMeet('/a/*', '/a/.x')).toBe(false)
      expect(globsMeet('/a/b', '/a')).toBe(false)
    })
  })

  describe('paths edges', () => {
    const word = (text: string): Word => ({
      text,
      literal: !/[*?[]/.test(text),
      quoting: 'bare',
      pattern: /[*?[]/.test(text) ? text : null,
    })
    const found = (text: string, directories: string[] = [], tree = false) =>
      pathFinding(word(text), directories, tree ? 'prints tree' : 'prints')

    describe('where a word leads', () => {
      test.each<[string, string[], string[]]>([
        ['/a/b', [], ['/a/b']],
        ['/a//b/./c/../d/', [], ['/a/b/d']],
        ['/..', [], ['/']],
        ['/', [], ['/']],
        ['', [], ['.']],
        ['.', [], ['.']],
        ['./x', [], ['x']],
        ['x/', [], ['x']],
        ['x/..', [], ['.']],
        ['x../.y', [], ['x../.y']],
        ['../x', [], ['../x', '/x']],
        ['../../x', [], ['../../x', '/x']],
        ['a/../../x', [], ['../x', '/x']],
        ['..', [], ['..', '/']],
        ['../..', [], ['../..', '/']],
        ['../x/a..', [], ['../x/a..', '/x/a..']],
        ['x', ['/etc', '/var'], ['x', '/etc/x', '/var/x']],
        ['../x', ['/etc/a'], ['../x', '/x', '/etc/x']],
        ['/x', ['/etc'], ['/x']],
        ['x/', ['/etc'], ['x', '/etc/x']],
        ['~', [], ['/root']],
        ['~/x', [], ['/root/x']],
        ['~root/x', [], ['/root/x']],
        ['~root', [], ['/root']],
        ['~bob/x', [], ['/home/bob/x']],
        ['~Bob/x', [], ['~Bob/x']],
        ['x~root', [], ['x~root']],
        ['x/~bob', [], ['x/~bob']],
        ['$HOME/x', [], ['/root/x']],
        ['$HOME', [], ['/root']],
        [`\${HOME}/x`, [], ['/root/x']],
        ['$HOMES/x', [], ['$HOMES/x']],
        ['x$HOME/y', [], ['x$HOME/y']],
        ['$PWD/x', [], ['x']],
        ['$PWD', ['/etc'], ['.', '/etc']],
        [`\${PWD}/x`, ['/etc'], ['x', '/etc/x']],
        ['$PWDS/x', [], ['$PWDS/x']],
        ['x$PWD/y', [], ['x$PWD/y']],
      ])('%j from %j: %j', (text, directories, expected) => {
        expect(normalise(text, directories)).toEqual(expected)
      })
    })

    describe('what is wrong with reading a path', () => {
      test.each<[string, string[], boolean, string | null]>([
        ['/var/log/syslog', [], false, null],
        ['/etc/shadow', [], false, 'secret'],
        ['shadow', ['/etc'], false, 'secret'],
        ['sudoers', [], false, null],
        ['sudoers', ['/etc'], false, 'secret'],
        ['/etc/sha*', [], false, 'secret'],
        ['/etc/s?adow', [], false, 'secret'],
        ['/var/log/*.log', [], false, null],
        ['/dev/null', [], false, null],
        ['null', ['/dev'], false, 'secret'],
        ['null', ['/srv', '/dev'], false, 'secret'],
        ['/dev/zero', [], false, 'endless'],
        ['/dev/../etc/shadow', [], false, 'secret'],
        ['/root/.ssh/../x', [], false, 'secret'],
        ['/root/x/../y', [], false, null],
        ['/../x', [], false, null],
        ['../x', [], false, null],
        ['/etc', [], false, null],
        ['/etc', [], true, 'holds secrets'],
        ['/', [], true, 'holds secrets'],
        ['/home', [], true, 'holds secrets'],
        ['/home/bob', [], true, 'holds secrets'],
        ['/srv/app', [], true, 'holds secrets'],
        ['/var/log/nginx', [], true, null],
        ['/srv/app/app.conf', [], true, null],
        ['.', [], true, 'holds secrets'],
        ['./', [], true, 'holds secrets'],
        ['..', [], true, 'holds secrets'],
        ['../..', [], true, 'holds secrets'],
        ['.', [], false, null],
        ['..x', [], true, null],
        ['x..', [], true, 'holds secrets'],
        ['.git', [], true, 'holds secrets'],
        ['a/b', [], true, 'holds secrets'],
        ['a/b', ['/var/log'], true, null],
      ])('%j from %j, everything below it %s: %s', (text, directories, tree, expected) => {
        expect(found(text, directories, tree)).toBe(expected)
      })

      test('a wildcard is held against each place it could stand in', () => {
        const list = pathList(['/etc/shadow*', '/srv/secret/**'])
        const leads = (text: string, directories: string[] = []) => leadsTo(word(text), list, directories)
        expect([leads('sha*'), leads('sha*', ['/var', '/etc']), leads('sha*', ['/var'])]).toEqual([false, true, false])
        expect([leads('/srv/s*'), leads('/srv/s*/x'), leads('/srv/x*')]).toEqual([true, true, false])
        expect([leads('/etc/*.log'), leads('/etc/shadow-'), leads('/etc/sha')]).toEqual([false, true, false])
      })
    })
  })

  describe('path index', () => {
    const lists = { secret: [...hiddenPaths, ...measuredPaths], open: openTrees, public: publicPaths }
    const made = Object.values(lists).map((list) => ({ index: pathIndex(list), expression: globExpression(list) }))

    /** Paths near those of the lists: a pattern with its wildcards filled in, then changed a little. */
    const near = fc
      .tuple(
        fc.constantFrom(...Object.values(lists).flat()),
        fc.constantFrom('', 'x', '.x', 'a.b', 'x/y', 'SHADOW', 'id_rsa'),
        fc.constantFrom('', '/', '/tail', '.bak', 'x'),
        fc.constantFrom('', '/', '/srv/', 'rel/'),
        fc.boolean(),
      )
      .map(([pattern, filling, tail, head, isUpper]) => {
        const path = `${head}${pattern
          .replace(/\*\*|\*/g, filling)
          .replace(/\?/g, 'q')
          .replace(/\[[^\]]*\]/g, '1')}${tail}`
        return isUpper ? path.toUpperCase() : path
      })

    test('an index of paths answers as one expression of all of them does', () => {
      fc.assert(
        fc.property(near, (path) => {
          for (const { index, expression } of made)
            expect([path, index.test(pathOf(path))]).toEqual([path, expression.test(path)])
        }),
        { numRuns: 3_000 },
      )
    })

    test('every pattern is found by a path that it names', () => {
      const { index, expression } = made[0]!
      for (const pattern of lists.secret) {
        const path = pattern
          .replace(/\*\*|\*/g, 'x')
          .replace(/\?/g, 'q')
          .replace(/\[[^\]]*\]/g, '1')
        expect([pattern, index.test(pathOf(path))]).toEqual([pattern, expression.test(path)])
      }
    })
  })
})

describe('bounds', () => {
  describe('bounds', () => {
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
    ])('an endless read is told its bounded form, which runs: %s', (text, bound) => {
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
    ])('what has no bounded form gets none: %s', (text, bound) => {
      expect(judged(text)).toMatchObject({ verdict: 'ask', bound, rewrite: null })
    })

    test('a timeout bounds a stream, if it ends it soon and for certain', () => {
      expect(judged('timeout 5 journalctl -f').verdict).toBe('run')
      for (const text of ['timeout 0 journalctl -f', 'timeout 1d journalctl -f', 'timeout -s 0 5 journalctl -f']) {
        expect(judged(text).verdict).toBe('ask')
      }
    })

    test('a rewrite never carries a write along', () => {
      expect(judged('rm x; journalctl -f')).toMatchObject({ code: 'UNKNOWN_COMMAND', rewrite: null })
      expect(judged('sudo journalctl -f')).toMatchObject({ code: 'ROOT', rewrite: null, bound: 'unbounded_stream' })
    })
  })

  describe('bounds edges', () => {
    const words = (line: string): Word[] =>
      line.split(' ').map((text) => ({ text, literal: !text.includes('$'), quoting: 'bare', pattern: null }))

    /** `pager: head -n 200 x`, `pager: -` where there is no bounded form, `pager:` where it is best left out, or null. */
    function byName(line: string, piped = false): string | null {
      const all = words(line)
      const found = unboundedByName(all[0]!.text, all, piped)
      return found && `${found.bound}: ${found.words?.join(' ') ?? '-'}`
    }
    function byGrammar(grammar: Partial<Grammar>, line: string, piped = false, name = 'show'): string | null {
      const all = words(line)
      const made: Grammar = { manual: '', options: {}, operands: { rest: 'text' }, ...grammar }
      const found = unboundedByGrammar(name, read(all, compile({ show: made }).get('show')!), all, piped)
      return found && `${found.bound}: ${found.words?.join(' ') ?? '-'}`
    }

    describe('by its name alone', () => {
      test.each<[string, boolean, string | null]>([
        ['less x', false, 'pager: head -n 200 x'],
        ['less', true, 'pager: '],
        ['less', false, 'pager: -'],
        ['less x', true, 'pager: head -n 200 x'],
        ['less x y', false, 'pager: -'],
        ['less -R', false, 'pager: -'],
        ['less +F', false, 'pager: -'],
        ['less a-b', false, 'pager: head -n 200 a-b'],
        ['less $x', false, 'pager: -'],
        ['vim x', false, 'pager: -'],
        ['htop', false, 'unbounded_stream: top -b -n 1'],
        ['atop', false, 'unbounded_stream: -'],
        ['python3', false, 'interactive_repl: -'],
        ['python3', true, null],
        ['python3 x', false, null],
        ['python3 x', true, null],
        ['frobnicate', false, null],
      ])('%j, behind a pipe %s: %s', (line, piped, expected) => {
        expect(byName(line, piped)).toBe(expected)
      })
    })

    describe('by its grammar', () => {
      const follow: Partial<Grammar> = {
        options: { '-f': 'flag', '-a': 'flag', '-n': 'number', '-s': 'number', '--follow': 'flag', '-c': 'number' },
        endless: {
          when: ['-f', '--follow', '-s'],
          unless: ['-c'],
          instead: { drop: ['-f', '--follow', '-s'], add: ['-n', '100'] },
        },
      }
      test.each([
        ['show x', null],
        ['show -f x', 'unbounded_stream: show -n 100 x'],
        ['show --follow x', 'unbounded_stream: show -n 100 x'],
        ['show -af x', 'unbounded_stream: show -n 100 -a x'],
        ['show -fa x', 'unbounded_stream: show -n 100 -a x'],
        ['show -ff x', 'unbounded_stream: show -n 100 x'],
        ['show -a -f x', 'unbounded_stream: show -n 100 -a x'],
        ['show -s 5 x', 'unbounded_stream: show -n 100 x'],
        ['show -f -c 5 x', null],
        ['show -a x', null],
      ])('%j: %s', (line, expected) => {
        expect(byGrammar(follow, line)).toBe(expected)
      })

      test.each<[string, string[], string]>([
        ['show -f x', ['-n', '100', 'y'], 'unbounded_stream: show -n 100 y x'],
        ['show -f x', ['y', '-n'], 'unbounded_stream: show -n x y'],
        ['show -f x', ['y'], 'unbounded_stream: show x y'],
        ['show -f x', [], 'unbounded_stream: show x'],
      ])('%j with %j put in: %s', (line, add, expected) => {
        expect(byGrammar({ ...follow, endless: { when: ['-f'], instead: { drop: ['-f'], add } } }, line)).toBe(expected)
      })

      test('what is put in stands behind the sub-command it is for', () => {
        const logs: Partial<Grammar> = {
          options: { '-C': 'text' },
          commands: { logs: { manual: '', ...follow, operands: { rest: 'name' } } },
        }
        expect(byGrammar(logs, 'show -C z logs -f x')).toBe('unbounded_stream: show -C z logs -n 100 x')
      })

      test.each([
        ['show 1', 'unbounded_stream: show 1 1'],
        ['show 1.5', 'unbounded_stream: show 1.5 1'],
        ['show 10', 'unbounded_stream: show 10 1'],
        ['show 1.25', 'unbounded_stream: show 1.25 1'],
        ['show 1 5', null],
        ['show', null],
        ['show x', null],
        ['show x1', null],
        ['show 1x', null],
        ['show 1.x', null],
      ])('an interval alone repeats for ever: %j: %s', (line, expected) => {
        expect(byGrammar({ endless: { when: 'interval', instead: { drop: [], add: ['1'] } } }, line)).toBe(expected)
      })

      test('always, with and without a form that ends', () => {
        expect(byGrammar({ endless: { when: 'always', instead: null } }, 'show x')).toBe('unbounded_stream: -')
        expect(
          byGrammar(
            { endless: { when: 'always', instead: { drop: [], add: ['-1'] } }, options: { '-1': 'flag' } },
            'show x',
          ),
        ).toBe('unbounded_stream: show -1 x')
      })

      test.each<[string, boolean, string | null]>([
        ['show', false, 'interactive_repl: -'],
        ['show db', false, 'interactive_repl: -'],
        ['show db x', false, null],
        ['show', true, null],
        ['show -z', false, null],
      ])('a prompt that is told nothing to do waits: %j, behind a pipe %s: %s', (line, piped, expected) => {
        const sql: Partial<Grammar> = { options: { '-e': 'text' }, requires: ['-e'] }
        expect(byGrammar(sql, line, piped, 'mysql')).toBe(expected)
        expect(byGrammar(sql, line, piped, 'show')).toBe(null)
      })
    })

    describe('the strictest finding decides', () => {
      const finding = (code: Finding['code']): Finding => ({ code, reason: `why ${code}`, token: null })
      const decided = (...codes: Finding['code'][]) => {
        const { verdict, effect, code } = decide(codes.map(finding))
        return `${verdict} ${effect} ${code}`
      }
      test.each<[Finding['code'][], string]>([
        [[], 'run read READ'],
        [['ARGUMENT'], 'ask write ARGUMENT'],
        [['ARGUMENT', 'FORBIDDEN'], 'refuse forbidden FORBIDDEN'],
        [['TOO_LONG'], 'refuse forbidden TOO_LONG'],
        [['UNREADABLE'], 'refuse forbidden UNREADABLE'],
        [['HIDDEN_CHARACTER'], 'refuse forbidden HIDDEN_CHARACTER'],
        [['FOREIGN_CHARACTER'], 'refuse forbidden FOREIGN_CHARACTER'],
        [['UNBOUNDED'], 'ask read UNBOUNDED'],
        [['UNBOUNDED', 'SENSITIVE_PATH'], 'ask read SENSITIVE_PATH'],
        [['UNBOUNDED', 'ARGUMENT'], 'ask write ARGUMENT'],
        [['SENSITIVE_PATH', 'EXFILTRATION', 'UNKNOWN_NAME'], 'ask read SENSITIVE_PATH'],
        [['SENSITIVE_PATH', 'WRAPPER'], 'ask write SENSITIVE_PATH'],
      ])('of %j: %s', (codes, expected) => {
        expect(decided(...codes)).toBe(expected)
      })

      test('and is told as it was found', () => {
        expect(decide([{ code: 'ROOT', reason: 'as root', token: 'sudo' }])).toMatchObject({
          reason: 'as root',
          token: 'sudo',
        })
        expect(decide([])).toMatchObject({ reason: 'every command only looks', token: null })
      })
    })
  })
})
