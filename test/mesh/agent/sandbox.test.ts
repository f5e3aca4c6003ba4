import { spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { manifest } from '../../../domain/mesh.ts'
import type { RunOptions } from '../../../mesh/agent/capability.ts'
import { type Confinement, findConfinement } from '../../../mesh/agent/confine.ts'
import { runProgram } from '../../../mesh/agent/run.ts'
import { patienceMs, temporaryDirectory } from '../../support/directory.ts'
import { aManifest, keys, startAgent } from '../../support/running-agent.ts'

const own = keys()
const { limits } = manifest.parse(aManifest(own))
let place: ReturnType<typeof temporaryDirectory>
let port = 0
let visitors = 0
const listener = createServer((socket) => {
  visitors += 1
  socket.on('error', () => undefined)
  socket.end('hello\n')
})
beforeAll(async () => {
  place = temporaryDirectory()
  chmodSync(place.path, 0o777)
  writeFileSync(join(place.path, 'kept'), 'kept\n')
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  port = (listener.address() as { port: number }).port
})
afterAll(() => {
  listener.close()
  place.remove()
})

async function run(confinement: Confinement, text: string, options: Partial<RunOptions> = {}) {
  const runner = { limits, confinement, marker: `req_${'a'.repeat(24)}`, signal: AbortSignal.timeout(patienceMs) }
  return runProgram(['/bin/bash', '--noprofile', '--norc', '-c', text], { confine: 'read', ...options }, runner)
}

const found = new Map<string, Confinement>()
const kept = temporaryDirectory()
const state = join(kept.path, 'state')
const key = join(kept.path, 'tls.key')
const secret = 'nobody may read this'
mkdirSync(join(state, 'journal'), { recursive: true, mode: 0o700 })
mkdirSync(join(state, 'rehearsals/r-1'), { recursive: true })
for (const file of [join(state, 'refresh.json'), join(state, 'journal/1'), key])
  writeFileSync(file, secret, { mode: 0o600 })
writeFileSync(join(state, 'rehearsals/r-1/copy'), 'a copy\n')
chmodSync(kept.path, 0o755)
chmodSync(state, 0o700)
const hidden = { paths: [state, key], rehearsals: join(state, 'rehearsals') }
for (const kind of ['bwrap', 'unshare', 'user'] as const) found.set(kind, await findConfinement([kind], hidden))
afterAll(() => {
  for (const confinement of found.values()) confinement.close()
  kept.remove()
})

test('on this machine reads are confined in at least one way', async () => {
  const best = await findConfinement()
  expect(best.sandbox).not.toBe('none')
  best.close()
})

const strong = ['bwrap', 'unshare'].filter((kind) => found.get(kind)?.sandbox === kind)
describe.each(strong)('inside %s', (kind) => {
  const inside = (text: string, options: Partial<RunOptions> = {}) => run(found.get(kind) as Confinement, text, options)
  afterEach(() => {
    expect(readdirSync(place.path)).toEqual(['kept'])
    expect(readFileSync(join(place.path, 'kept'), 'utf8')).toBe('kept\n')
  })

  test.each([
    ['a file is made', 'touch DIR/new'],
    ['a file is written over', 'echo other > DIR/kept'],
    ['a file is added to', 'echo other >> DIR/kept'],
    ['a file is removed', 'rm -f DIR/kept'],
    ['a file is moved', 'mv DIR/kept DIR/moved'],
    ['a directory is made', 'mkdir DIR/new'],
    ['its rights are changed', 'chmod 777 DIR/kept'],
    ['its times are changed', 'touch DIR/kept'],
    ['a link is made', 'ln -s /etc/passwd DIR/link'],
    ['a device is made', 'mknod DIR/null c 1 3'],
    ['something is mounted', 'mount -t tmpfs tmpfs DIR'],
    ['it is made writable again', 'mount -o remount,bind,rw / && touch DIR/new'],
    ['/etc is written', 'touch /etc/nightshift-probe'],
    ['/var/tmp is written', 'touch /var/tmp/nightshift-probe'],
    ['a kernel setting is changed', 'echo 1 > /proc/sys/vm/drop_caches'],
    ['another namespace is entered by /proc', 'touch /proc/1/root/DIR/new'],
    ['the agent is gone through', `touch /proc/${process.pid}/root/DIR/new || touch /proc/${process.pid}/cwd/DIR/new`],
    ['a new user namespace is tried', 'unshare -rm sh -c "mount -o remount,bind,rw / && touch DIR/new"'],
    ['a disk is opened', 'exec 3<> "$(find /dev -maxdepth 1 -type b | head -1)"'],
  ])('%s: no', async (_, text) => {
    const { exitCode, stderr } = await inside(text.replaceAll('DIR', place.path))
    expect(exitCode).not.toBe(0)
    expect(stderr).not.toBe('')
    expect(existsSync('/etc/nightshift-probe') || existsSync('/var/tmp/nightshift-probe')).toBe(false)
  })

  test.each([
    ['bash', 'exec 3<>/dev/tcp/127.0.0.1/PORT && cat <&3'],
    ['curl', 'curl -sS -m 5 http://127.0.0.1:PORT/'],
    ['udp', 'echo x > /dev/udp/192.0.2.1/53'],
  ])('the network by %s: no, unless the command reads the network', async (program, text) => {
    const before = visitors
    const { exitCode } = await inside(text.replaceAll('PORT', String(port)))
    expect(exitCode).not.toBe(0)
    expect(visitors).toBe(before)
    if (program !== 'bash') return
    const seen = await inside(text.replaceAll('PORT', String(port)), { sees: ['network'] })
    expect(seen.stdout).toBe('hello\n')
  })

  test('it reads, under its user, in the given directory, with private temporary space', async () => {
    const text =
      'cat kept; id -u; pwd; echo x > /dev/null; head -c 3 /dev/zero | wc -c; echo y > $TMPDIR/scratch && cat $TMPDIR/scratch'
    const { stdout, stderr } = await inside(text, { cwd: place.path })
    expect([stdout, stderr]).toEqual([`kept\n${process.getuid?.()}\n${place.path}\n3\ny\n`, ''])
    expect(existsSync('/dev/shm/scratch')).toBe(false)
  })

  test('it sees the processes of the machine, and can end none of them', async () => {
    const victim = spawn('sleep', ['600'])
    try {
      const { stdout, stderr } = await inside(`ps -o args= -p ${victim.pid}; kill -9 ${victim.pid}`)
      expect(stdout).toBe('sleep 600\n')
      expect(stderr).toContain('No such process')
      expect(victim.exitCode ?? victim.signalCode).toBeNull()
    } finally {
      victim.kill('SIGKILL')
    }
  })

  test('owners are shown as on the machine, or the run reports that they are not', async () => {
    if (process.getuid?.() !== 0) return
    chownSync(join(place.path, 'kept'), 12_345, 12_345)
    const { stdout, hidesOwners = false } = await inside('stat -c %u kept', { cwd: place.path })
    chownSync(join(place.path, 'kept'), 0, 0)
    expect([stdout, hidesOwners]).toEqual(kind === 'bwrap' ? ['65534\n', true] : ['12345\n', false])
  })

  test('no process of it is left, wherever it hid', async () => {
    const mark = `6${Date.now()}`
    await inside(`setsid sleep ${mark} & disown; exit 0`)
    const { stdout } = await inside(`ps -eo args= | grep -c "^sleep ${mark}"`)
    expect(stdout).toBe('0\n')
  })

  test('mounts are shown as on the machine to commands that read them, and even these write no file', async () => {
    const ours = readFileSync('/proc/self/mounts', 'utf8')
    const { stdout } = await inside('cat /proc/self/mounts', { sees: ['mounts'] })
    // What covers the agent's own files stands there as well.
    const shown = stdout.split('\n').filter((line) => !line.includes(kept.path))
    expect(shown.sort()).toEqual(ours.split('\n').sort())
    const { exitCode } = await inside(`echo other >> ${place.path}/kept`, { sees: ['mounts'] })
    expect(exitCode).not.toBe(0)
  })
})

const working = ['bwrap', 'unshare', 'user'].filter((kind) => found.get(kind)?.sandbox === kind)
describe.each(working)('the agent’s own files, inside %s', (kind) => {
  const sights: NonNullable<RunOptions['sees']>[] = [[], ['network'], ['mounts'], ['network', 'mounts']]

  test.each(sights)('are not visible, whatever else of the machine is (%s)', async (...sees) => {
    const link = join(kept.path, `link-${kind}`)
    if (!existsSync(link)) symlinkSync(state, link)
    const ways = [
      state,
      link,
      `${kept.path}/./state`,
      key,
      `/proc/self/root${state}`,
      `/proc/self/cwd/state`,
      `/proc/${process.pid}/root${state}`,
      `/proc/${process.pid}/cwd`,
      `/proc/${process.pid}/fd`,
      `/proc/1/root${state}`,
    ]
    const text = `for way in ${ways.join(' ')}; do cat $way $way/refresh.json $way/journal/* ; done; cat /proc/${process.pid}/environ; ls -A ${state}`
    const { stdout } = await run(found.get(kind) as Confinement, text, { sees, cwd: kept.path })
    expect(stdout).not.toContain(secret)
    // Where it should be, an empty directory is.
    expect(stdout).toBe('')
  })

  test('are visible as temporary copies to a check that runs on them', async () => {
    const text = `cat ${state}/rehearsals/r-1/copy; ls -A ${state}; echo x > ${state}/rehearsals/r-1/copy`
    const { stdout } = await run(found.get(kind) as Confinement, text, { sees: ['rehearsals'] })
    // Where reads run as another user, it cannot open them.
    expect(stdout).toBe(kind === 'user' ? '' : 'a copy\nrehearsals\n')
    expect(readFileSync(join(state, 'rehearsals/r-1/copy'), 'utf8')).toBe('a copy\n')
  })

  test('nothing of the environment of the agent is passed on', async () => {
    const planted = {
      LD_PRELOAD: '/x.so',
      GIT_DIR: '/x',
      LESSOPEN: '|x',
      PYTHONPATH: '/x',
      PERL5LIB: '/x',
      BASH_ENV: '/x',
    }
    const before = { ...process.env }
    Object.assign(process.env, planted)
    try {
      const { stdout } = await run(found.get(kind) as Confinement, 'env -0 | cut -z -d= -f1 | tr "\\0" "\\n"')
      const names = stdout.trim().split('\n').sort()
      expect(
        names.filter(
          (name) =>
            !/^(?:PATH|LANG|HOME|TMPDIR|PAGER|SYSTEMD_PAGER|PYTHON(?:NOUSERSITE|SAFEPATH)|NIGHTSHIFT_OPERATION|PWD|SHLVL|_)$/.test(
              name,
            ),
        ),
      ).toEqual([])
    } finally {
      for (const name of Object.keys(planted)) {
        if (before[name] === undefined) delete process.env[name]
        else process.env[name] = before[name]
      }
    }
  })
})

test('a sandbox that shows the agent’s own files is not used', async () => {
  if (process.getuid?.() !== 0) return
  const open = temporaryDirectory()
  chmodSync(open.path, 0o755)
  writeFileSync(join(open.path, 'key'), 'x', { mode: 0o644 })
  const confinement = await findConfinement(['user'], { paths: [join(open.path, 'key')], rehearsals: null })
  expect(confinement.sandbox).toBe('none')
  open.remove()
})

test('as another user, if nothing better works, a file of the agent is not written', async () => {
  const confinement = found.get('user') as Confinement
  expect(confinement.sandbox).toBe(process.getuid?.() === 0 ? 'user' : 'none')
  if (confinement.sandbox === 'none') return
  const { exitCode, stdout } = await run(confinement, `id -u; echo other >> ${place.path}/kept`)
  expect([exitCode === 0, stdout]).toEqual([false, '65534\n'])
  await run(confinement, `echo full > ${place.path}/new`)
  expect(existsSync(join(place.path, 'new')) ? readFileSync(join(place.path, 'new'), 'utf8') : '').toBe('')
})

test.each([
  ['bwrap', "bwrap: Can't bind mount /newroot/x: No such file or directory", 1, 3],
  ['unshare', 'nsenter: cannot open /proc/7/ns/user: No such file or directory', 1, 3],
  ['a program that complains so itself', "ls: cannot access '/x'", 1, 1],
  ['a program that is not there', 'bwrap: execvp x: No such file or directory', 1, 1],
])('a sandbox that failed to start is started again, by its message: %s', async (_, complaint, exitCode, times) => {
  let made = 0
  const confinement: Confinement = {
    sandbox: 'bwrap',
    complaint: /^(?:bwrap: (?!execvp)|nsenter: )/,
    async wrap(argv) {
      made += 1
      return made < 3 ? ['/bin/sh', '-c', 'echo "$1" >&2; exit "$2"', 'sh', complaint, String(exitCode)] : [...argv]
    },
    environment: {},
    endsWhole: () => true,
    canShow: () => true,
    hidesOwners: () => false,
    close: () => undefined,
  }
  const { stdout } = await run(confinement, 'echo read')
  expect([made, stdout]).toEqual([times, times === 3 ? 'read\n' : ''])
})

test('an agent without rights also confines its reads, and names the way', async () => {
  const uid = process.getuid?.() === 0 ? 65_534 : process.getuid?.()
  const agent = await startAgent(own, uid === 65_534 ? { uid } : {})
  try {
    const { sandbox } = await agent.health()
    expect(['bwrap', 'unshare']).toContain(sandbox)
    const { answer } = await agent.call('shell.eval', { text: 'id -u; cat /proc/loadavg | wc -l' })
    expect(answer.result).toMatchObject({ stdout: `${uid}\n1\n`, stderr: '' })
  } finally {
    await agent.stop()
  }
})
