import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { temporaryDirectory } from '../../support/directory.ts'
import { aManifest, keys, type Running, startAgent } from '../../support/running-agent.ts'

// An agent without rights, in a namespace of mounts where its system's programs are those of a
// test: only root can make one.

const own = keys()
const uid = 65_534
const asRoot = process.getuid?.() === 0 ? describe : describe.skip
let place: ReturnType<typeof temporaryDirectory>
let agent: Running | null = null
beforeAll(() => {
  place = temporaryDirectory()
})
afterEach(async () => {
  await agent?.stop()
  agent = null
})
afterAll(() => place.remove())

const enter = `set -e
mount -t overlay overlay -o "lowerdir=$1:/usr/bin" /usr/bin
mount -t tmpfs -o mode=755 tmpfs /srv
mkdir -m 777 /srv/open; mkdir /srv/closed
echo secret > /srv/closed/log; chmod 600 /srv/closed/log; echo open > /srv/open/log; ln -s /srv/open/log /srv/closed/link
[ ! -e "$1/sudoers" ] || mount --bind "$1/sudoers" /etc/sudoers
shift
exec "$@"`

const root_reads = [
  ['/usr/bin/id', '-u'],
  ['wc', '-l', '/srv/closed/log'],
  ['wc', '-l', '/srv/open/log'],
  ['wc', '-l', '/srv/open/none'],
  ['wc', '-l', '/srv/closed/link'],
  ['/usr/bin/uptime', '-s'],
  ['/usr/bin/nproc'],
  ['/usr/bin/free'],
  ['tty'],
]

/** `tools`: put over what the system has. */
async function started(name: string, prepare: (tools: string) => void, timeout_seconds = 20): Promise<Running> {
  const tools = join(place.path, name)
  mkdirSync(tools)
  const scripts = {
    uptime: 'env; echo "[$*]"; grep NoNewPrivs /proc/self/status',
    nproc: 'echo 1',
    free: 'sleep 8',
    tty: 'while :; do echo "$0"; done',
  }
  for (const [script, text] of Object.entries(scripts)) {
    writeFileSync(join(tools, script), `#!/bin/sh\n${text}\n`)
    chmodSync(join(tools, script), 0o755)
  }
  chmodSync(join(tools, 'nproc'), 0o777)
  prepare(tools)
  const manifest = aManifest(own, { root_reads, limits: { timeout_seconds, output_bytes: 20_000 } })
  const behind = ['unshare', '--mount', '--', '/bin/sh', '-c', enter, 'sh', tools]
  agent = await startAgent(own, { uid, manifest, behind })
  return agent
}

/**
 * util-linux's own `unshare -n -- program` starts the program; with the set-user-ID bit, as root.
 */
function asSudo(tools: string, mode = 0o4755) {
  copyFileSync('/usr/bin/unshare', join(tools, 'sudo'))
  chmodSync(join(tools, 'sudo'), mode)
}

const exec = async (argv: string[], args: object = {}) =>
  (await agent?.call('shell.exec', { argv, ...args }))?.answer as never
const text = async (text: string) => (await agent?.call('shell.eval', { text }))?.answer as never

asRoot('a device whose manifest lets root read', () => {
  test('runs such a command without approval in exactly these words, outside of the sandbox, and the rest of a pipe stays inside', async () => {
    await started('words', asSudo)
    const ran = { ok: true, approval_status: 'auto_approved' }
    expect(await exec(['sudo', '-n', '/usr/bin/id', '-u'])).toMatchObject({ ...ran, result: { stdout: '0\n' } })
    expect(await text('sudo -n wc -l /srv/closed/log')).toMatchObject({
      ...ran,
      result: { stdout: '1 /srv/closed/log\n' },
    })
    // Behind the pipe it is the agent's own user, who may write nowhere.
    expect(
      await text('sudo -n /usr/bin/id -u | cat - /proc/self/status | grep -E "^(0|NoNewPrivs|Uid)"'),
    ).toMatchObject({
      ...ran,
      result: { stdout: expect.stringMatching(/^0\nUid:\t(?!0\t).*\nNoNewPrivs:\t1\n$/s) },
    })
    const said = JSON.stringify(await exec(['sudo', '-n', '/usr/bin/uptime', '-s']))
    expect(said).toContain('[-s]')
    // Nothing of the agent's home or path goes along.
    expect(said).toContain('HOME=/root')
    expect(said).toContain('PATH=/usr/bin:/bin:/usr/sbin:/sbin')
    expect(said).toContain('NoNewPrivs:\\t0')
    expect(readFileSync(join(agent!.state, 'journal/000000001.jsonl'), 'utf8')).toContain('sudo -n /usr/bin/id -u')
  })

  test('asks for everything else, and where others than root could change the program or the file', async () => {
    await started('else', asSudo)
    for (const argv of [
      ['sudo', '-n', '/usr/bin/id'],
      ['sudo', '-n', '/usr/bin/id', '-u', '-n'],
      ['sudo', '-n', 'id', '-u'],
      ['sudo', '-n', '-E', '/usr/bin/id', '-u'],
      ['sudo', '-n', 'A=b', '/usr/bin/id', '-u'],
      ['sudo', '-n', '/usr/bin/nproc'],
      ['sudo', '-n', 'wc', '-l', '/srv/open/log'],
      ['sudo', '-n', 'wc', '-l', '/srv/open/none'],
      ['sudo', '-n', 'wc', '-l', '/srv/closed/link'],
    ])
      expect([argv, await exec(argv)]).toEqual([
        argv,
        expect.objectContaining({ ok: false, error: expect.objectContaining({ code: 'approval_required' }) }),
      ])
    expect(await exec(['sudo', '-n', '/usr/bin/nproc'])).toMatchObject({
      error: {
        message: expect.stringContaining('users other than root may write /usr/bin/nproc'),
      },
    })
    expect(await exec(['sudo', '-n', '/usr/bin/id', '-u'], { cwd: '/srv' })).toMatchObject({
      error: { code: 'approval_required' },
    })
    // What a person allows runs as it stands.
    const granted = await agent?.granted('shell.exec', { argv: ['sudo', '-n', '/usr/bin/nproc'] })
    expect(granted?.answer).toMatchObject({ ok: true, approval_status: 'granted', result: { stdout: '1\n' } })
  })

  test.each([
    ['is not there', null],
    ['may be written by others', 0o4777],
  ])('asks if sudo %s', async (name, mode) => {
    await started(name.replaceAll(' ', '-'), (tools) => {
      if (mode !== null) asSudo(tools, mode)
      // A file that is no program hides the machine's own.
      else writeFileSync(join(tools, 'sudo'), '')
    })
    expect(await exec(['sudo', '-n', '/usr/bin/id', '-u'])).toMatchObject({
      error: { code: 'approval_required', message: expect.stringContaining('/usr/bin/sudo') },
    })
  })

  test('keeps its output and its time within the limits of the manifest', async () => {
    await started('limits', asSudo, 1)
    expect(await text('sudo -n tty')).toMatchObject({ ok: true, truncated: true })
    expect(await exec(['sudo', '-n', '/usr/bin/free'])).toMatchObject({ ok: false, error: { code: 'timeout' } })
  })
})

;(existsSync('/usr/bin/sudo') && process.getuid?.() === 0 ? test : test.skip)(
  'with the sudo of this machine root reads, a command that sudoers does not allow fails, and a surviving root process is not waited for',
  async () => {
    await started(
      'real',
      (tools) => {
        writeFileSync(join(tools, 'sudoers'), 'nobody ALL=(root) NOPASSWD: /usr/bin/id -u, /usr/bin/free\n')
        chmodSync(join(tools, 'sudoers'), 0o440)
      },
      1,
    )
    expect(await text('sudo -n /usr/bin/id -u | cat')).toMatchObject({ ok: true, result: { stdout: '0\n' } })
    expect(await exec(['sudo', '-n', 'wc', '-l', '/srv/closed/log'])).toMatchObject({
      result: { exit_code: 1, stdout: '', stderr: expect.stringContaining('sudo:') },
    })
    expect(await exec(['sudo', '-n', '/usr/bin/free'])).toMatchObject({ ok: false, error: { code: 'timeout' } })
  },
)
