import { expect, test } from '@jest/globals'
import { normalise, pathFinding } from '../../../safety/command/paths.ts'
import { globsMeet } from '../../../safety/command/patterns.ts'

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
])('a path is the same in every spelling: %s', (path, expected) => expect(normalise(path)).toEqual(expected))

test('a relative path starts where cd went', () => expect(normalise('x', ['/etc'])).toEqual(['x', '/etc/x']))

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
  for (const path of ['/etc/sh*', '/etc/shad?w', '/e*/shadow', '/proc/*/e*', '/home/*/.ssh/*', '/etc/[s]hadow', '*']) {
    expect(pathFinding(pattern(path), [], 'prints')).toBe('secret')
  }
  for (const path of ['/var/log/*.log', '/proc/*/status', '/etc/*release']) {
    expect(pathFinding(pattern(path), [], 'prints')).toBeNull()
  }
})

test('two patterns meet if one path fits both', () => {
  expect(globsMeet('/a/*c', '/a/b*')).toBe(true)
  expect(globsMeet('/a/**/x', '/a/b/c/*')).toBe(true)
  expect(globsMeet('/a/*', '/a/.x')).toBe(false)
  expect(globsMeet('/a/b', '/a')).toBe(false)
})
