import { spawn } from 'node:child_process'
import { mkdirSync, readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { eventually, temporaryDirectory } from '../support/directory.ts'
import { leftovers, makeRelease, newKey, onBareHost } from './bare-host.ts'

/**
 * What a host has already: somebody's own files, another release, processes that run, a run that
 * was killed.
 */
const isRoot = process.getuid?.() === 0

const systemd = `mkdir -p /run/systemd/system
printf '#!/bin/sh\\necho "systemctl $*"; [ ! -e /tmp/fails ] || case $* in *-worker) exit 1 ;; esac\\n' >/usr/local/sbin/systemctl; chmod +x /usr/local/sbin/systemctl`

;(isRoot ? describe : describe.skip)('install.sh over an existing installation', () => {
  const place = temporaryDirectory()
  const host = join(place.path, 'host')
  const key = newKey()
  const dist = (name: string) => {
    mkdirSync(join(place.path, name), { recursive: true })
    return join(place.path, name)
  }
  const whole = dist('whole')
  const newer = dist('newer')
  beforeAll(async () => {
    mkdirSync(host)
    await makeRelease(whole, { key })
    await makeRelease(newer, { version: '1.3.0', key })
  })
  afterAll(() => place.remove())

  const run = (script: string) => {
    const { stdout, stderr } = onBareHost(host, script)
    return { lines: stdout.trim().split('\n'), said: stderr.trim() }
  }
  const nothing = 'install.sh: nothing was installed.'

  test.each([
    [
      'a checkout in /opt/nightshift',
      'mkdir -p /opt/nightshift/.git /opt/nightshift/web',
      '/opt/nightshift holds what this script did not put there (.git): move it to another place.',
      'ls -A /opt/nightshift',
      ['.git', 'web'],
    ],
    [
      'a command of a checkout',
      'mkdir -p /usr/local/bin; ln -s /srv/nightshift/bin/nightshift.js /usr/local/bin/nightshift',
      '/usr/local/bin/nightshift is another command, of a checkout perhaps: move it away.',
      'readlink /usr/local/bin/nightshift',
      ['/srv/nightshift/bin/nightshift.js'],
    ],
  ])('%s is neither replaced nor removed', (_what, before, sentence, look, kept) => {
    const { lines, said } = run(`${before}; sh ${whole}/install.sh --no-systemd; echo "ends with $?"; ${look}`)
    expect([lines, said]).toEqual([['ends with 1', ...kept], `install.sh: ${sentence}\n${nothing}`])
    const removed = run(`${before}; sh ${whole}/install.sh --remove --purge >/dev/null; ${look}`)
    expect(removed.lines).toEqual(kept)
  })

  test("a person's account with that name survives a purge", () => {
    const { lines } = run(
      `useradd -m -d /home/night nightshift; sh ${whole}/install.sh --no-systemd >/dev/null; sh ${whole}/install.sh --remove --purge >/dev/null; id -un nightshift; userdel nightshift`,
    )
    expect(lines).toEqual(['nightshift'])
  })

  test('a unit that a person changed is kept beside the new one, and an unchanged one is not', () => {
    const { lines } = run(`${systemd}
sh ${whole}/install.sh >/dev/null; echo 'Nice=5' >>/etc/systemd/system/nightshift-api.service
sh ${newer}/install.sh | grep -v '^systemctl'; ls /etc/systemd/system | grep nightshift; tail -n 1 /etc/systemd/system/nightshift-api.service.yours`)
    expect(lines).toEqual([
      '/etc/systemd/system/nightshift-api.service was changed here: it is kept as /etc/systemd/system/nightshift-api.service.yours. Changes in "systemctl edit nightshift-api" outlive an upgrade.',
      expect.stringMatching(/^Nightshift 1\.3\.0 is in/),
      ...['nightshift-api.service', 'nightshift-api.service.yours', 'nightshift-worker.service', 'Nice=5'],
    ])
  })

  test('server and agent of one host are upgraded together, and a service that does not start again is named', () => {
    const { lines, said } = run(`${systemd}
sh ${whole}/install.sh >/dev/null; sh ${whole}/install.sh --agent >/dev/null; touch /tmp/fails; sh ${newer}/install.sh; echo "ends with $?"; rm /tmp/fails`)
    expect(lines.filter((line) => line.includes('restart')).map((line) => line.split('-').at(-1))).toEqual([
      ...['api', 'worker', 'agent'],
    ])
    expect(lines.at(-1)).toBe('ends with 0')
    expect(said).toBe('nightshift-worker did not start again: journalctl -u nightshift-worker says why.')
  })

  test('the agent of a host with a server is not removed by an option that takes both', () => {
    const { lines, said } = run(
      `sh ${whole}/install.sh --no-systemd >/dev/null; sh ${whole}/install.sh --agent --remove --purge; echo "ends with $?"; nightshift --version`,
    )
    expect(lines).toEqual(['ends with 1', '1.2.0'])
    expect(said).toContain('the server is on this host as well, and --remove takes both')
  })

  test('--purge without --remove installs nothing', () => {
    const { lines, said } = run(`sh ${whole}/install.sh --purge --no-systemd; echo "ends with $?"; ${leftovers}`)
    expect([lines, said]).toEqual([['ends with 1'], 'install.sh: --purge belongs to --remove: nothing was done.'])
  })

  test('a removal while processes run that no unit started removes nothing, and names them', async () => {
    const from = dist('running')
    await makeRelease(from, { key, node: 'sleep' })
    const { lines, said } = run(`sh ${from}/install.sh --no-systemd >/dev/null
/opt/nightshift/current/bin/node 60 & pid=$!; until [ "$(readlink /proc/$pid/exe)" = /opt/nightshift/1.2.0/bin/node ]; do sleep 0.02; done
sh ${from}/install.sh --remove --purge 2>&1 | sed "s/$pid/PID/"; ls /opt/nightshift; kill $pid; { wait $pid; } 2>/dev/null
sh ${from}/install.sh --remove --purge; ${leftovers}`)
    expect(said).toBe('')
    expect(lines).toEqual([
      'install.sh: Nightshift runs in the processes PID: end them, and run this again. Nothing was removed.',
      ...['1.2.0', 'current'],
      'Nightshift is removed, with its settings, its folders and its users. Its database is as it was.',
    ])
  })

  test('a process of a container, with its own folder of that name, blocks neither installation nor removal', async () => {
    const node = '/opt/nightshift/1.0.0/bin/node'
    const begin = `mount -t tmpfs none /opt && mkdir -p ${dirname(node)} && cp "$(command -v sleep)" ${node} && exec ${node} 60`
    const container = spawn('unshare', ['--mount', 'sh', '-c', begin], { stdio: 'ignore' })
    try {
      await eventually('the container to run', async () => readlinkSync(`/proc/${container.pid}/exe`) === node)
      const { lines, said } = run(
        `sh ${whole}/install.sh --no-systemd; sh ${whole}/install.sh --remove --purge; ${leftovers}`,
      )
      expect(said).toBe('')
      expect(lines).toEqual([
        expect.stringMatching(/^Nightshift 1\.2\.0 is in/),
        'Nightshift is removed, with its settings, its folders and its users. Its database is as it was.',
      ])
    } finally {
      container.kill()
    }
  })

  test('files that a killed run moved aside return with the next run, also if it fails', async () => {
    const full = dist('full')
    await makeRelease(full, { key, node: '#!/bin/sh\necho broken; exit 1\n' })
    const { lines, said } = run(`sh ${whole}/install.sh --no-systemd >/dev/null
mv /opt/nightshift/1.2.0 /opt/nightshift/.old-1.2.0; mkdir /opt/nightshift/.new-7
sh ${full}/install.sh --no-systemd; echo "ends with $?"; nightshift --version; ls -A /opt/nightshift`)
    expect(lines).toEqual(['ends with 1', '1.2.0', '1.2.0', 'current'])
    expect(said).toBe(`install.sh: its Node does not run here: broken\n${nothing}`)
  })

  test('a release candidate is older than its release', async () => {
    const candidate = dist('candidate')
    await makeRelease(candidate, { version: '1.2.0-rc.1', key })
    const { lines, said } = run(
      `sh ${candidate}/install.sh --no-systemd >/dev/null; sh ${whole}/install.sh --no-systemd >/dev/null; echo $?; sh ${candidate}/install.sh --no-systemd; echo $?`,
    )
    expect(lines).toEqual(['0', '1'])
    expect(said).toContain('/var/lib/nightshift is of 1.2.0, and this is 1.2.0-rc.1')
  })

  test('under a strict umask the users of the services may still run it', () => {
    const { lines } = run(
      `umask 077; sh ${whole}/install.sh --no-systemd >/dev/null; setpriv --reuid=nightshift --regid=nightshift --clear-groups nightshift --version`,
    )
    expect(lines).toEqual(['1.2.0'])
  })

  test('root writes through no link in a folder that the user of the services owns', () => {
    const { lines } = run(`echo 0.1 >/tmp/precious; sh ${whole}/install.sh --no-systemd >/dev/null
ln -sf /tmp/precious /var/lib/nightshift/version; sh ${newer}/install.sh --no-systemd >/dev/null; cat /tmp/precious; rm /tmp/precious`)
    expect(lines).toEqual(['0.1'])
  })

  test('a folder with blanks, quotes and a line break in its name works like any other', () => {
    const { lines, said } =
      run(`odd="$(printf "/tmp/a 'b\\nc")"; mkdir "$odd"; cp ${whole}/* "$odd" 2>/dev/null; export TMPDIR="$odd"
sh "$odd/install.sh" --no-systemd >/dev/null; echo $?; sh "$odd/install.sh" --no-systemd >/dev/null; echo $?; nightshift --version; rm -r "$odd"`)
    expect([lines, said]).toEqual([['0', '0', '1.2.0'], ''])
  })

  test('an OpenSSL that cannot check the signature is named, and not the download', () => {
    const old = `printf '#!/bin/sh\\ncase $1 in version) echo "OpenSSL 1.1.1w  11 Sep 2023" ;; *) echo "unknown option" >&2; exit 1 ;; esac\\n' >/usr/local/sbin/openssl; chmod +x /usr/local/sbin/openssl`
    const { lines, said } = run(`${old}; sh ${whole}/install.sh --no-systemd; echo "ends with $?"; ${leftovers}`)
    expect(lines).toEqual(['ends with 1'])
    expect(said).toContain(
      'install.sh: OpenSSL 1.1.1w  11 Sep 2023 cannot check this kind of signature: install OpenSSL 3',
    )
    const wrongKey = run(`sh ${whole}/install.sh --no-systemd --key /nowhere; ${leftovers}`)
    expect(wrongKey.said).toBe(`install.sh: /nowhere cannot be read: --key takes the file of a public key.\n${nothing}`)
  })
})
