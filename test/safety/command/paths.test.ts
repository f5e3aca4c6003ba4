import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Word } from '../../../safety/command/parse.ts'
import { pathIndex, pathOf } from '../../../safety/command/path-index.ts'
import { leadsTo, normalise, pathFinding, pathList } from '../../../safety/command/paths.ts'
import { globExpression, globsMeet } from '../../../safety/command/patterns.ts'
import { hiddenPaths, measuredPaths, openTrees, publicPaths } from '../../../safety/command/secret-paths.ts'

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
