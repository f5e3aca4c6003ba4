import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { manifest } from '../../../domain/mesh.ts'
import type { RunOptions } from '../../../mesh/agent/capability.ts'
import { type Confinement, findConfinement } from '../../../mesh/agent/confine.ts'
import { runProgram } from '../../../mesh/agent/run.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { aManifest, keys, startAgent } from './running.ts'

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
  const runner = { limits, confinement, marker: `req_${'a'.repeat(24)}`, signal: AbortSignal.timeout(60_000) }
  return runProgram(['/bin/bash', '--noprofile', '--norc', '-c', text], { confine: 'read', ...options }, runner)
}

const found = new Map<string, Confinement>()
for (const kind of ['bwrap', 'unshare', 'user'] as const) found.set(kind, await findConfinement([kind]))
afterAll(() => {
  for (const confinement of found.values()) confinement.close()
})

test('on this machine reads are confined somehow', async () => {
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
  ])('the network by %s: no, unless it is what the command looks at', async (program, text) => {
    const before = visitors
    const { exitCode } = await inside(text.replaceAll('PORT', String(port)))
    expect(exitCode).not.toBe(0)
    expect(visitors).toBe(before)
    if (program !== 'bash') return
    const seen = await inside(text.replaceAll('PORT', String(port)), { sees: ['network'] })
    expect(seen.stdout).toBe('hello\n')
  })

  test('it reads, as the user it is, in the directory it was given, with room of its own that nobody else sees', async () => {
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

  test('nothing of it is left, wherever it hid', async () => {
    const mark = `6${Date.now()}`
    await inside(`setsid sleep ${mark} & disown; exit 0`)
    const { stdout } = await inside(`ps -eo args= | grep -c "^sleep ${mark}"`)
    expect(stdout).toBe('0\n')
  })

  test('mounts are shown as the machine has them to what looks at them, and even that writes no file', async () => {
    const ours = readFileSync('/proc/self/mounts', 'utf8')
    const { stdout } = await inside('cat /proc/self/mounts', { sees: ['mounts'] })
    expect(stdout.split('\n').sort()).toEqual(ours.split('\n').sort())
    const { exitCode } = await inside(`echo other >> ${place.path}/kept`, { sees: ['mounts'] })
    expect(exitCode).not.toBe(0)
  })
})

test('as another user, where nothing better works, a file of the agent is not written', async () => {
  const confinement = found.get('user') as Confinement
  expect(confinement.sandbox).toBe(process.getuid?.() === 0 ? 'user' : 'none')
  if (confinement.sandbox === 'none') return
  const { exitCode, stdout } = await run(confinement, `id -u; echo other >> ${place.path}/kept`)
  expect([exitCode === 0, stdout]).toEqual([false, '65534\n'])
  await run(confinement, `echo full > ${place.path}/new`)
  expect(existsSync(join(place.path, 'new')) ? readFileSync(join(place.path, 'new'), 'utf8') : '').toBe('')
})

test('an agent without rights confines as well, and says how', async () => {
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
