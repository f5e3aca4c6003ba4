import { existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { publicKeyOf } from '../../package/sign.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { leftovers, makeRelease, newKey, onBareHost } from './bare-host.ts'

// Another root and other mounts: only root makes them.
const isRoot = process.getuid?.() === 0

;(isRoot ? describe : describe.skip)('install.sh', () => {
  const place = temporaryDirectory()
  const host = join(place.path, 'host')
  const key = newKey()
  const dist = (name: string) => {
    mkdirSync(join(place.path, name), { recursive: true })
    return join(place.path, name)
  }
  const whole = dist('whole')
  beforeAll(async () => {
    mkdirSync(host)
    await makeRelease(whole, { key })
  })
  afterAll(() => place.remove())

  /** Runs the script on a fresh host after `before`, and says what it said and what is left. */
  function install(args: string, { from = whole, before = ':', after = leftovers } = {}) {
    const { stdout, stderr } = onBareHost(
      host,
      `${before}\nsh ${from}/install.sh ${args}; echo "ends with $?"\n${after}`,
    )
    return { lines: stdout.trim().split('\n'), said: stderr.trim() }
  }
  const nothing = 'install.sh: nothing was installed.'

  test('installs the server with its command, its user, its folders and its units', () => {
    const systemd =
      'mkdir -p /run/systemd/system; printf "#!/bin/sh\\necho systemctl \\"\\$@\\"\\n" >/usr/local/sbin/systemctl; chmod +x /usr/local/sbin/systemctl'
    const after = `readlink /opt/nightshift/current /usr/local/bin/nightshift; (cd /; nightshift --version)
stat -c '%a %U %G %n' /etc/nightshift /var/lib/nightshift /opt/nightshift/1.2.0/bin/node; ls /etc/systemd/system | grep nightshift; ls -A /opt/nightshift`
    expect(install('', { before: systemd, after })).toEqual({
      lines: [
        ...[
          'systemctl daemon-reload',
          'systemctl try-restart nightshift-api',
          'systemctl try-restart nightshift-worker',
        ],
        'Nightshift 1.2.0 is in /opt/nightshift/current, and /usr/local/bin/nightshift runs it. What comes next: docs/start/package.md',
        ...['ends with 0', '1.2.0', '/opt/nightshift/current/bin/nightshift', '1.2.0'],
        ...['751 root nightshift /etc/nightshift', '700 nightshift nightshift /var/lib/nightshift'],
        ...['755 root root /opt/nightshift/1.2.0/bin/node', 'nightshift-api.service', 'nightshift-worker.service'],
        ...['1.2.0', 'current'],
      ],
      said: '',
    })
  })

  test('installs an agent alone with its own user and neither API nor worker, and a removal keeps its state until a purge', () => {
    const after = `${leftovers}; sh ${whole}/install.sh --remove; ${leftovers}; sh ${whole}/install.sh --remove --purge; ${leftovers}; echo end`
    const { lines, said } = install('--agent --no-systemd', { after })
    expect(said).toBe('')
    const stays = ['left: /etc/nightshift', 'left: /var/lib/nightshift-agent']
    expect(lines.slice(1)).toEqual([
      ...[
        'ends with 0',
        'left: /opt/nightshift',
        ...stays,
        'left: /usr/local/bin/nightshift',
        'left: user nightshift-agent',
      ],
      'Nightshift is removed; /etc/nightshift and /var/lib/nightshift* stay (--remove --purge).',
      ...[...stays, 'left: user nightshift-agent'],
      'Nightshift is removed, with its settings, its folders and its users. Its database is as it was.',
      'end',
    ])
  })

  test('installs a newer release in one step, keeps the one before, and refuses an older one over newer state', async () => {
    const [newer, newest] = [dist('newer'), dist('newest')]
    await makeRelease(newer, { version: '1.10.0', key })
    await makeRelease(newest, { version: '2.0.0', key })
    const after = `for release in ${newer} ${newest}; do sh $release/install.sh --no-systemd >/dev/null; echo $?; done; ls /opt/nightshift; nightshift --version
sh ${whole}/install.sh --no-systemd; echo $?; sh ${whole}/install.sh --remove >/dev/null; sh ${whole}/install.sh --no-systemd; echo $?`
    const { lines, said } = install('--no-systemd', { after })
    expect(lines.slice(1)).toEqual(['ends with 0', '0', '0', '1.10.0', '2.0.0', 'current', '2.0.0', '1', '1'])
    const refused =
      'install.sh: /var/lib/nightshift is of 2.0.0, and this is 1.2.0: install 2.0.0 or later; docs/how-to/backup.md says how to go back.'
    expect(said.split('\n')).toEqual([refused, nothing, refused, nothing])
  })

  const loader = process.arch === 'x64' ? '/lib64/ld-linux-x86-64.so.2' : '/lib/ld-linux-aarch64.so.1'
  const archive = `nightshift-1.2.0-linux-${process.arch}.tar.xz`
  const busybox =
    'mkdir /tmp/static && cp "$(command -v busybox)" /tmp/static/ && /tmp/static/busybox --install -s /tmp/static; PATH=/tmp/static'

  test.each([
    ['without root', `setpriv --reuid=65534 --clear-groups `, ':', '', 'this needs root: run it with sudo.'],
    [
      'without systemd',
      '',
      ':',
      '',
      'systemd does not run here: add --no-systemd, and start the processes by what you have (docs/start/package.md).',
    ],
    [
      'without unshare, for an agent',
      '',
      'rm -f /usr/bin/unshare /bin/unshare',
      '--agent --no-systemd',
      'unshare is missing, which confines what an agent reads: apt-get install util-linux.',
    ],
    ['without flock', '', 'rm -f /usr/bin/flock', '--no-systemd', 'flock is missing: apt-get install util-linux.'],
    ['without xz', '', 'rm -f /usr/bin/xz /bin/xz', '--no-systemd', 'xz is missing: apt-get install xz-utils.'],
    [
      'without openssl',
      '',
      'rm -f /usr/bin/openssl /usr/local/bin/openssl',
      '--no-systemd',
      'openssl is missing, which checks the signature: apt-get install openssl, or say --unsigned if you know where the files are from.',
    ],
    [
      'with 100 MB free',
      '',
      'mount -t tmpfs -o size=100m tmpfs /opt',
      '--no-systemd',
      '/opt has 100 MB free, and unpacking needs 300 MB: make room there.',
    ],
  ])('on a host %s prints one sentence with the remedy, and leaves nothing', (_what, as, before, args, sentence) => {
    const { stdout, stderr } = onBareHost(
      host,
      `${before}\n${as}sh ${whole}/install.sh ${args}; echo "ends with $?"\n${leftovers}`,
    )
    expect([stdout.trim(), stderr.trim()]).toEqual(['ends with 1', `install.sh: ${sentence}\n${nothing}`])
  })

  test('with an unknown word ends before it reads anything', () => {
    expect(install('--force')).toEqual({
      lines: ['ends with 1'],
      said: 'install.sh: there is no --force: the first lines of this script name what there is.',
    })
  })

  // Without the loader no other program of this machine runs.
  const withBusybox = existsSync('/bin/busybox') || existsSync('/usr/bin/busybox') ? test : test.skip
  withBusybox('a host with musl is told so', () => {
    const before = `touch /lib/ld-musl-x86_64.so.1; ${busybox}; /tmp/static/busybox mv ${loader} ${loader}.gone`
    const { stdout, stderr } = onBareHost(
      host,
      `${before}\n/tmp/static/sh ${whole}/install.sh --no-systemd; echo "ends with $?"`,
    )
    const sentence =
      'this host has musl, and Node needs glibc 2.28 or later: take the container image, or a host of Debian, Ubuntu, RHEL or SUSE.'
    expect([stdout.trim(), stderr.trim()]).toEqual(['ends with 1', `install.sh: ${sentence}\n${nothing}`])
  })

  const download = `${archive} is not what its checksum says, half downloaded or altered: download it again.`
  const unsigned =
    'SHA256SUMS is not signed by this key: download all files again, and compare the key with the one you know.'
  test.each<[string, (from: string) => void, string, string]>([
    ['an archive that was half downloaded', (from) => truncateSync(join(from, archive), 600), '', download],
    ['an archive that was altered', (from) => alter(join(from, archive)), '', download],
    ['sums that were altered', (from) => alter(join(from, 'SHA256SUMS')), '', unsigned],
    [
      'sums of another key',
      (from) => writeFileSync(join(from, 'own.pem'), `${publicKeyOf(newKey())}\n`),
      '--key own.pem',
      unsigned,
    ],
    [
      'sums without a signature',
      (from) => writeFileSync(join(from, 'SHA256SUMS.sig'), ''),
      '',
      'SHA256SUMS.sig or the key is missing: download it, or say --unsigned if you know where the files are from.',
    ],
    [
      'sums that do not name the archive',
      (from) => writeFileSync(join(from, 'SHA256SUMS'), ''),
      '--unsigned',
      `SHA256SUMS does not name ${archive}: download both again.`,
    ],
  ])('%s: one sentence with the remedy, and nothing is left', async (what, spoil, args, sentence) => {
    const from = dist(what.replaceAll(' ', '-'))
    await makeRelease(from, { key })
    spoil(from)
    const { lines, said } = install(`--no-systemd ${args.replace('own.pem', join(from, 'own.pem'))}`, { from })
    expect([lines, said]).toEqual([['ends with 1'], `install.sh: ${sentence}\n${nothing}`])
  })

  test('accepts a release without a signature with --unsigned', async () => {
    const from = dist('without-key')
    await makeRelease(from, { key: null })
    expect(install('--no-systemd --unsigned', { from }).lines).toContain('ends with 0')
  })

  test('on a disk that fills during unpacking leaves nothing, and the earlier release still runs', async () => {
    const from = dist('large')
    await makeRelease(from, { version: '1.3.0', key, bulkMegabytes: 4 })
    // It has room when it is asked, and another program takes it.
    const small = `mount -t tmpfs -o size=2m tmpfs /opt
printf '#!/bin/sh\\necho Filesystem; echo - 0 0 999999\\n' >/usr/local/sbin/df; chmod +x /usr/local/sbin/df`
    const { lines, said } = install('--no-systemd', { from, before: small })
    expect(lines).toEqual(['ends with 1'])
    expect(said).toContain('install.sh: it could not be unpacked: ')
    expect(said).toContain(nothing)
    const after = 'nightshift --version; ls -A /opt/nightshift'
    const before = `${small}; sh ${whole}/install.sh --no-systemd >/dev/null`
    expect(install('--no-systemd', { from, before, after }).lines).toEqual(['ends with 1', '1.2.0', '1.2.0', 'current'])
  })

  test('beside a running removal or installation is refused and changes nothing, and the first one ends well', async () => {
    const from = dist('long')
    const node = '#!/bin/sh\ntouch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.02; done; echo 1.2.0\n'
    await makeRelease(from, { key, node })
    const second = (args: string) => `sh ${whole}/install.sh ${args} --no-systemd 2>&1; echo "ends with $?"`
    const { stdout } = onBareHost(
      host,
      `rm -f /tmp/begun /tmp/go; sh ${from}/install.sh --no-systemd & pid=$!; until [ -e /tmp/begun ]; do sleep 0.02; done
${second('')}; ${second('--remove --purge')}; touch /tmp/go; wait $pid; echo "ends with $?"; ls -A /opt/nightshift`,
    )
    const busy = 'install.sh: another install.sh is at work on this host: run this again when it has ended.'
    expect(stdout.trim().split('\n')).toEqual([
      ...[busy, nothing, 'ends with 1', busy, 'ends with 1'],
      ...[expect.stringMatching(/^Nightshift 1\.2\.0 is in/), 'ends with 0', '1.2.0', 'current'],
    ])
  })

  test('cannot be blocked by a lock that another user of the host can take', () => {
    const { stdout } = onBareHost(
      host,
      `: >/tmp/held; chmod 666 /tmp/held; places=$(find / /etc /opt /run /tmp /usr/local /var -maxdepth 0 -type d)
for place in $places; do setpriv --reuid 65534 --clear-groups flock -F "$place" sh -c 'echo >>/tmp/held; exec sleep 120' >/dev/null 2>&1 & done
until [ "$(wc -l </tmp/held)" = "$(echo "$places" | wc -l)" ]; do sleep 0.02; done
sh ${whole}/install.sh --no-systemd 2>&1; echo "ends with $?"; stat -c %a /run/nightshift-install.lock; kill $(jobs -p)`,
    )
    expect(stdout).toMatch(/Nightshift 1\.2\.0 is in[\s\S]*ends with 0\n600\n/)
  })

  test('leaves nothing if it is stopped, and if it is killed leaves a draft, which the next run removes', async () => {
    const from = dist('slow')
    await makeRelease(from, { key, node: '#!/bin/sh\ntouch /tmp/begun; exec sleep 60\n' })
    const until = 'until [ -e /tmp/begun ]; do sleep 0.02; done; rm /tmp/begun'
    const stop = (signal: string) =>
      `setsid sh ${from}/install.sh --no-systemd 2>/dev/null & pid=$!; ${until}; kill -${signal} -$pid; wait $pid; echo "ends with $?"`
    const { stdout } = onBareHost(
      host,
      `rm -f /tmp/begun; ${stop('TERM')}; ${leftovers}; ${stop('KILL')}; ls -A /opt/nightshift | cut -c1-5
sh ${whole}/install.sh --no-systemd; ls -A /opt/nightshift`,
    )
    expect(stdout.trim().split('\n')).toEqual([
      ...[
        'ends with 130',
        'ends with 137',
        '.new-',
        expect.stringMatching(/^Nightshift 1\.2\.0 is in/),
        '1.2.0',
        'current',
      ],
    ])
  })
})

function alter(file: string): void {
  const bytes = readFileSync(file)
  bytes[20] = (bytes[20] ?? 0) ^ 1
  writeFileSync(file, bytes)
}
