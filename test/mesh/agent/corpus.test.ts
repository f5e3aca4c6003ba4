import { spawnSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type CapabilityRequest, type Manifest, manifest } from '../../../domain/mesh.ts'
import { allCapabilities } from '../../../mesh/agent/capabilities.ts'
import { hashOf, verifyChain } from '../../../mesh/agent/chain.ts'
import { type Guarded, rule } from '../../../mesh/agent/guard.ts'
import { judgeCommand } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { aManifest, aRequest, keys, startAgent } from './running.ts'

const own = keys()
/** Our own, and whatever else is named: `COMMANDS='a.json b.json' npm test -- test/mesh/agent/corpus`, each `[{ "command": … }]`. */
const corpora = [
  ...['reads', 'writes', 'holes', 'surroundings'].map(
    (name) => new URL(`../../data/commands/${name}.json`, import.meta.url),
  ),
  ...(process.env.COMMANDS?.split(' ') ?? []),
]
const commands = [
  ...new Set(
    corpora.flatMap((file) =>
      (JSON.parse(readFileSync(file, 'utf8')) as { command: string }[]).map(({ command }) => command),
    ),
  ),
]
const guarded: Guarded = {
  manifest: manifest.parse(aManifest(own)) as Manifest,
  keys: new Map([[own.control.id, { key: own.controlPublic, notAfterMs: null }]]),
  available: new Map(allCapabilities.map((capability) => [capability.capability, capability])),
  unavailable: {},
  sandbox: 'unshare',
  hidden: [],
  nowMs: Date.now(),
  isUsedGrant: () => false,
}
const request = { stream: false, rehearse: false, ...aRequest(own, 'shell.eval', { text: 'x' }) }
const ruled = (text: string) => rule({ ...request, args: { text } } as unknown as CapabilityRequest, guarded)

let place: ReturnType<typeof temporaryDirectory>
beforeAll(async () => {
  await loadSql()
  place = temporaryDirectory()
})
afterAll(() => place.remove())

test('the device decides about every command of the corpus as the kernel does', () => {
  const different: string[] = []
  for (const text of commands) {
    const { verdict, code } = judgeCommand(text, { knownHosts: new Set(), directory: '/' })
    const ruling = ruled(text)
    const word = ruling.ok ? 'run' : ruling.code === 'approval_required' ? 'ask' : 'refuse'
    // An endless read is not asked about: nobody could wait for it.
    const expected = code === 'UNBOUNDED' ? 'refuse' : verdict
    if (word !== expected) different.push(`${text}: ${verdict} (${code}), on the device ${word}`)
  }
  expect(different).toEqual([])
})

/** A root of its own for an unprivileged user who may write everywhere in it; programs and libraries are the machine's, read-only. */
function throwAwayRoot(uid: number, name = 'root'): string {
  const root = join(place.path, name)
  for (const directory of [
    'etc',
    'var/log/nginx',
    'var/lib',
    'home/ops',
    'root',
    'srv/app',
    'tmp',
    'proc',
    'dev',
    'usr',
    'run',
    'opt',
  ])
    mkdirSync(join(root, directory), { recursive: true })
  for (const name of ['bin', 'sbin', 'lib', 'lib32', 'lib64']) {
    const found = lstatSync(`/${name}`, { throwIfNoEntry: false })
    if (found?.isSymbolicLink()) symlinkSync(readlinkSync(`/${name}`), join(root, name))
    else if (found) mkdirSync(join(root, name))
  }
  for (const name of [
    'passwd',
    'group',
    'hosts',
    'os-release',
    'resolv.conf',
    'fstab',
    'debian_version',
    'ld.so.cache',
    'nsswitch.conf',
  ])
    if (existsSync(`/etc/${name}`)) writeFileSync(join(root, 'etc', name), readFileSync(`/etc/${name}`))
  for (const name of ['syslog', 'messages', 'kern.log', 'dpkg.log', 'auth.log', 'nginx/access.log', 'nginx/error.log'])
    writeFileSync(join(root, 'var/log', name), 'one error\ntwo lines\n')
  for (const name of ['home/ops/notes', 'srv/app/app.conf', 'tmp/x', 'tmp/h', 'root/.bashrc'])
    writeFileSync(join(root, name), `${name}\n`)
  for (const path of everything(root)) if (process.getuid?.() === 0) chownSync(path, uid, uid)
  return root
}

function everything(root: string): string[] {
  return [
    root,
    ...readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isSymbolicLink())
      .map((entry) => join(entry.parentPath, entry.name)),
  ]
}

/** All that can be told of a tree but when it was read. */
function picture(root: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const name of ['', ...(readdirSync(root, { recursive: true }) as string[])].sort()) {
    const path = join(root, name)
    const stat = lstatSync(path, { bigint: true })
    const content = stat.isFile() ? hashOf(readFileSync(path)) : stat.isSymbolicLink() ? readlinkSync(path) : ''
    found.set(name, [stat.mode, stat.uid, stat.size, stat.mtimeNs, stat.ctimeNs, stat.nlink, content].join(' '))
  }
  return found
}

const enter = `set -e
root=$1; shift
for name in usr bin sbin lib lib32 lib64; do
  if [ -d "/$name" ] && [ ! -L "/$name" ]; then mount --rbind "/$name" "$root/$name"; mount -o remount,bind,ro "$root/$name"; fi
done
mount --rbind /proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom; do : > "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
exec chroot "$root" setpriv --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all -- "$@"`

// Several at a time: some wait for what never comes until their two seconds have passed.
const play = `xargs -0 -n 1 -P 6 bash -c 'timeout -k 1 2 bash --noprofile --norc -c "$0" < /dev/null > /dev/null 2>&1; echo $?'`

/** Runs each text in there and answers their exit codes, in no order. */
function runIn(root: string, uid: number, texts: readonly string[]): number[] {
  const asUser =
    process.getuid?.() === 0 ? ['--reuid', String(uid), '--regid', String(uid), '--clear-groups', '--'] : ['--']
  const { stdout, stderr, status } = spawnSync(
    'setpriv',
    [
      ...asUser,
      ...[
        'unshare',
        '--user',
        '--map-root-user',
        '--mount',
        '--pid',
        '--fork',
        '--kill-child',
        '--net',
        '--ipc',
        '--uts',
        '--',
      ],
      ...['/bin/sh', '-c', enter, 'sh', root, '/bin/bash', '--noprofile', '--norc', '-c', play],
    ],
    {
      input: `${texts.join('\0')}\0`,
      encoding: 'utf8',
      cwd: '/',
      maxBuffer: 10_000_000,
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8', HOME: '/home/ops' },
    },
  )
  expect([status, stderr]).toEqual([0, ''])
  return stdout.trim().split('\n').map(Number)
}

/** What npm, top and terraform keep of themselves in a home that they may write. In the sandbox they may not: see below. */
const ownTraces = /^home\/ops(?:$|\/\.(?:npm|config|terraform\.d)(?:$|\/))/

function changes(before: Map<string, string>, after: Map<string, string>): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path)).sort()
}

test('whatever of the corpus runs unasked changes nothing, where it could change everything', () => {
  const uid = 65_534
  const root = throwAwayRoot(uid)
  const approved = commands.filter((text) => ruled(text).ok)
  expect(approved.length).toBeGreaterThan(500)
  const before = picture(root)
  const codes = runIn(root, uid, approved)
  expect(codes.length).toBe(approved.length)
  // Most of them have found their program and something to look at.
  expect(codes.filter((code) => code === 0).length).toBeGreaterThan(200)
  expect(changes(before, picture(root)).filter((path) => !ownTraces.test(path))).toEqual([])
  // A write would have been seen.
  runIn(root, uid, ['echo more >> /var/log/syslog', 'touch /srv/new'])
  expect(changes(before, picture(root)).filter((path) => !ownTraces.test(path))).toEqual([
    'srv',
    'srv/new',
    'var/log/syslog',
  ])
}, 900_000)

const ownSecret = 'only-the-agent-knows-this'

/** All of the state but what the agent writes with every call. */
function stateOf(state: string): Map<string, string> {
  const own = /^(?:$|head\.json|nonces|journal(?:$|\/)|rehearsals$)/
  return new Map([...picture(state)].filter(([path]) => !own.test(path)))
}

/** Entries of the journal that no answer stands for, and answers that no entry stands for. */
function unexplained(state: string, answered: ReadonlySet<string>): string[] {
  const left = new Set(answered)
  const odd: string[] = []
  const requests = new Set([...answered].map((each) => each.split(' ')[0]))
  const chain = verifyChain(join(state, 'journal'), (entry, hash) => {
    if (!('request_id' in entry)) return
    if (!requests.has(entry.request_id)) odd.push(`${entry.kind} ${entry.request_id}`)
    left.delete(`${entry.request_id} ${hash}`)
  })
  return [...(chain.ok ? [] : [chain.reason]), ...odd, ...left]
}

test('through the door of an agent without rights nothing changes at all', async () => {
  const asRoot = process.getuid?.() === 0
  const agent = await startAgent(own, {
    ...(asRoot && { uid: 65_534 }),
    manifest: aManifest(own, { limits: { timeout_seconds: 3 } }),
  })
  const root = throwAwayRoot(65_534, 'confined')
  const refresh = join(agent.state, 'refresh.json')
  writeFileSync(refresh, `{"token":"${ownSecret}"}`)
  if (asRoot) chownSync(refresh, 65_534, 65_534)
  try {
    const stateBefore = stateOf(agent.state)
    const answered = new Set<string>()
    const leaked: string[] = []
    const before = picture(root)
    // Each starts in a sandbox of its own, which takes longer than the command: of our own corpus every third, of others all.
    const waiting = commands.filter((text, n) => ruled(text).ok && (process.env.COMMANDS || n % 3 === 0))
    const said = new Map<string, number>()
    const lane = async () => {
      for (let text = waiting.pop(); text !== undefined; text = waiting.pop()) {
        const { answer } = await agent.call('shell.eval', { text, cwd: root })
        answered.add(`${answer.request_id} ${answer.audit_hash}`)
        if (JSON.stringify(answer).includes(ownSecret)) leaked.push(text)
        const word = answer.ok ? answer.approval_status : (answer.error?.code ?? '')
        said.set(word, (said.get(word) ?? 0) + 1)
      }
    }
    await Promise.all([lane(), lane(), lane(), lane()])
    expect(said.get('auto_approved')).toBeGreaterThan(200)
    // Some take longer than three seconds, and a relative path may be more than a read in here.
    expect(
      [...said.keys()].filter((word) => !['auto_approved', 'timeout', 'approval_required'].includes(word)),
    ).toEqual([])
    expect(changes(before, picture(root))).toEqual([])
    // What is the agent's own is neither shown nor touched, and its journal is what it wrote itself.
    expect(leaked).toEqual([])
    expect(changes(stateBefore, stateOf(agent.state))).toEqual([])
    expect(unexplained(agent.state, answered)).toEqual([])
  } finally {
    await agent.stop()
  }
}, 900_000)
