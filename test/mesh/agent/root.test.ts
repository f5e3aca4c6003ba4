import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { Capability } from '../../../domain/mesh.ts'
import { allCapabilities } from '../../../mesh/agent/agent-state.ts'
import { verifyChain } from '../../../mesh/agent/chain.ts'
import { whyUnmet } from '../../../mesh/agent/preconditions.ts'
import { homeOf } from '../../../mesh/agent/programs.ts'
import { writableBelow, writersOf } from '../../../mesh/agent/root-read.ts'
import { shownAt } from '../../../mesh/agent/sandboxes.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import {
  aGrant,
  aManifest,
  aRequest,
  keys,
  newRequestId,
  type Running,
  startAgent,
} from '../../support/running-agent.ts'

describe('root', () => {
  describe('root only', () => {
    // Everybody may write to the directory that it is in, so nothing in it is root's alone.
    const place = temporaryDirectory()
    afterAll(() => place.remove())
    const file = join(place.path, 'file')
    writeFileSync(file, 'x')

    test('what others than root could put there is theirs, however it is reached', () => {
      expect(writersOf('/etc/passwd')).toBe('root')
      expect(writersOf('/usr/../etc/passwd')).toBe('root')
      expect(writersOf(file)).toBe('others')
      chmodSync(file, 0o600)
      expect(writersOf(file)).toBe('others')
      symlinkSync('/etc/passwd', join(place.path, 'to-root'))
      expect(writersOf(join(place.path, 'to-root'))).toBe('others')
      mkdirSync(join(place.path, 'directory'))
      expect(writersOf(join(place.path, 'directory/none'))).toBe('absent')
      symlinkSync(join(place.path, 'round'), join(place.path, 'round'))
      expect(writersOf(join(place.path, 'round'))).toBe('others')
      expect(writersOf('etc/passwd')).toBe('others')
    })

    test('a directory is root’s alone with all that is in it', () => {
      expect(writableBelow('/etc/passwd')).toBeNull()
      expect(writableBelow('/etc/none')).toBeNull()
      expect(writableBelow(join(place.path, 'directory'))).toBe(join(place.path, 'directory'))
      expect(writableBelow('/usr/include/linux') ?? '').toBe('')
      // Links lead out of it, and where they lead counts.
      expect(writableBelow('/tmp')).toBe('/tmp')
    })

    test('a condition over files names the one that is obeyed, also from above', async () => {
      const below = join(place.path, 'directory')
      const ask = (files: string[], up?: true) =>
        whyUnmet(
          {
            conditions: [{ kind: 'root_only', program: 'x', files, directories: ['directory'], ...(up && { up }) }],
            ...{ sees: [], environment: {}, cwd: place.path, rootRead: null },
          },
          { canShow: () => true },
          { run: () => Promise.reject(new Error('nothing is run for that')) },
        )
      expect(await ask(['file'])).toBeNull()
      expect(await ask(['file'], true)).toBe(`x: it obeys ${file}, which others than root may write`)
      expect(await ask([file])).toContain(file)
      expect(await ask(['../file'])).toContain(file)
      expect(await ask([`~/${'../'.repeat(9)}${file.slice(1)}`])).toContain('x: it obeys')
      expect(homeOf()).toMatch(/^\//)
      expect(below).not.toBe(file)
    })

    test('where the sandbox cannot show what a command looks at, it is not run unasked', async () => {
      const rests = { conditions: [], sees: ['mounts'], environment: {}, cwd: '/', rootRead: null } as const
      const run = () => Promise.reject(new Error('nothing is run for that'))
      expect(await whyUnmet(rests, { canShow: () => false }, { run })).toContain('cannot show the mounts')
    })

    test('what is hidden is hidden under every path that the table of mounts has for it', () => {
      const [device, root] = ['254:0', '/']
      const line = (target: string, from: string, on = device) => `30 1 ${on} ${from} ${target} rw - ext4 /dev/x rw`
      const mountinfo = [line('/', root), line(`${place.path}/directory`, '/other'), line('/proc', '/', '0:5')].join(
        '\n',
      )
      expect(shownAt(file, mountinfo)).toEqual([file])
      // The same tree once more, at a place whose name has a blank in it.
      const again = join(place.path, 'once more')
      symlinkSync(place.path, again)
      const twice = `${mountinfo}\n${line(`${place.path}/once\\040more`, place.path)}`
      expect(shownAt(file, twice)).toEqual([file, join(again, 'file')])
      expect(shownAt(join(place.path, 'none'), mountinfo)).toEqual([])
    })
  })

  describe('root read', () => {
    // An agent without rights, in a namespace of mounts where its system's programs are those of a test: only root can make one.

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

    /** util-linux's own `unshare -n -- program` starts the program; with the set-user-ID bit, as root. */
    function asSudo(tools: string, mode = 0o4755) {
      copyFileSync('/usr/bin/unshare', join(tools, 'sudo'))
      chmodSync(join(tools, 'sudo'), mode)
    }

    const exec = async (argv: string[], args: object = {}) =>
      (await agent?.call('shell.exec', { argv, ...args }))?.answer as never
    const text = async (text: string) => (await agent?.call('shell.eval', { text }))?.answer as never

    asRoot('a device whose manifest lets root look', () => {
      test('does so unasked with exactly these words, outside of the sandbox, and the rest of a pipe stays inside', async () => {
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

      test('asks for all else, and where others than root could change what is run or read', async () => {
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
            message: expect.stringContaining('others than root may write /usr/bin/nproc'),
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
      ])('asks where sudo %s', async (name, mode) => {
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
      'with the sudo of this machine root looks, what sudoers does not allow fails, and what root keeps alive is not waited for',
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
  })
})

describe('sudo mode', () => {
  /** A device that works as root: nothing is done without a grant for exactly this, whatever looks harmless or was allowed elsewhere. */

  const own = keys()
  let agent: Running
  let place: ReturnType<typeof temporaryDirectory>
  beforeAll(async () => {
    place = temporaryDirectory()
    writeFileSync(join(place.path, 'file'), 'kept\n')
    agent = await startAgent(own, {
      manifest: aManifest(own, {
        mode: 'sudo',
        roots: [{ path: place.path, writable: true }],
        // Neither list lifts it.
        auto_approve: ['uptime', 'sudo'],
        root_reads: [['/usr/bin/id', '-u']],
      }),
    })
  })
  afterAll(async () => {
    await agent.stop()
    place.remove()
  })

  const file = () => join(place.path, 'file')
  const calls = (): [Capability, Record<string, unknown>][] => [
    ['shell.exec', { argv: ['uptime'] }],
    ['shell.exec', { argv: ['sudo', '-n', '/usr/bin/id', '-u'] }],
    ['shell.eval', { text: 'uptime' }],
    ['shell.eval', { text: 'sudo -n /usr/bin/id -u' }],
    ['fs.read', { path: file() }],
    ['fs.list', { path: place.path }],
    ['fs.stat', { path: file() }],
    ['fs.write', { path: file(), content: 'x' }],
    ['git.clone', { url: `file://${place.path}`, path: join(place.path, 'clone') }],
    ['git.commit', { path: place.path, message: 'x', paths: ['file'] }],
    ['git.push', { path: place.path, remote: 'origin', branch: 'main' }],
    ['git.log', { path: place.path }],
    ['git.show', { path: place.path, revision: 'HEAD' }],
    ['git.revert', { path: place.path, revision: 'abcdef0' }],
    ['disk.usage', {}],
    ['pkg.install', { packages: ['hello'] }],
    ['pkg.search', { query: 'hello' }],
    ['proc.list', {}],
    ['proc.kill', { pid: 1, start_time: '1' }],
    ['log.read', { path: '/var/log/syslog' }],
    ['docker.container.list', {}],
    ['docker.container.exec', { container: 'web', argv: ['ls'] }],
    ['docker.container.logs', { container: 'web' }],
    ['docker.container.restart', { container: 'web' }],
    ['service.show', { unit: 'none.service' }],
    ['service.restart', { unit: 'none.service' }],
    ['service.start', { unit: 'none.service' }],
    ['service.stop', { unit: 'none.service' }],
  ]
  /** What a device may answer besides: it has no engine, or takes no such arguments. */
  const nothingDone = ['approval_required', 'capability_unavailable', 'invalid_arguments', 'blocked', 'outside_roots']

  /** Entries of the journal that say that something was begun. */
  function begun(): number {
    let entries = 0
    verifyChain(join(agent.state, 'journal'), ({ kind }) => {
      if (kind === 'accepted' || kind === 'running') entries += 1
    })
    return entries
  }

  test('every capability is tried', () => {
    expect(new Set(calls().map(([capability]) => capability)).size).toBe(allCapabilities.length)
  })

  test('nothing runs or is rehearsed unasked there, and nothing of it is begun', async () => {
    const before = begun()
    const asked = new Set<string>()
    for (const [capability, args] of calls())
      for (const rehearse of [false, true]) {
        const { answer } = await agent.call(capability, args, { rehearse })
        expect([capability, rehearse, answer.ok, answer.result]).toEqual([capability, rehearse, false, null])
        expect(nothingDone).toContain(answer.error?.code)
        if (answer.error?.code === 'approval_required') asked.add(capability)
      }
    for (const each of ['shell.exec', 'shell.eval', 'fs.read', 'fs.list', 'fs.stat', 'proc.list'])
      expect(asked).toContain(each)
    expect(begun()).toBe(before)
  })

  describe('a grant there', () => {
    const uptime = { argv: ['uptime'] }
    async function withGrantFor(other: { capability?: Capability; args?: Record<string, unknown> }, changes = {}) {
      const request_id = newRequestId()
      const grant = aGrant(own, { request_id, capability: 'shell.exec', args: uptime, ...other }, changes)
      return (await agent.post(aRequest(own, 'shell.exec', uptime, { request_id, grant }))).answer
    }

    test('lets exactly this run', async () => {
      expect(await withGrantFor({})).toMatchObject({ ok: true, approval_status: 'granted' })
    })

    test.each([
      ['other words', { args: { argv: ['uptime', '-p'] } }, {}],
      ['the same words for a shell', { capability: 'shell.eval' as const, args: { text: 'uptime' } }, {}],
      ['another device', {}, { device: 'web-2' }],
      ['another request', {}, { request_id: newRequestId() }],
      ['another time', {}, { issued_at: '2020-01-01T00:00:00Z', expires_at: '2020-01-01T00:02:00Z' }],
    ])('for %s does not', async (_, other, changes) => {
      const before = begun()
      expect((await withGrantFor(other, changes)).error?.code).toMatch(/^grant_/)
      expect(begun()).toBe(before)
    })

    test.each([
      [['rm', '-rf', '/']],
      [['sh', '-c', 'rm -rf /']],
      [['sudo', '-n', 'rm', '-rf', '/']],
      [['env', '-i', 'sudo', 'dd', 'if=/dev/zero', 'of=/dev/sda']],
    ])('does not let %j run', async (argv) => {
      expect((await agent.granted('shell.exec', { argv })).answer).toMatchObject({
        ok: false,
        error: { code: 'blocked' },
      })
    })

    test("shows nothing of the agent's own, nor lets it be written", async () => {
      for (const [capability, args] of [
        ['fs.read', { path: join(agent.state, 'manifest.json') }],
        ['fs.write', { path: join(agent.state, 'manifest.json'), content: '{}' }],
        ['fs.list', { path: join(agent.state, 'journal') }],
      ] as const)
        expect((await agent.granted(capability, args)).answer).toMatchObject({
          ok: false,
          error: { code: 'outside_roots' },
        })
    })
  })
})
