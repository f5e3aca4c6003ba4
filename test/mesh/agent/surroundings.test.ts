import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { CapabilityAnswer } from '../../../domain/mesh.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { aLeave, aManifest, keys, type Running, startAgent } from '../../support/running-agent.ts'

const own = keys()
const uid = process.getuid?.() === 0 ? 65_534 : undefined
let place: ReturnType<typeof temporaryDirectory>
let agent: Running
let evil = ''
let mark = ''
let count = 0
let pristine = ''

beforeAll(async () => {
  place = temporaryDirectory()
  chmodSync(place.path, 0o777)
  mark = join(place.path, 'ran')
  evil = join(place.path, 'evil')
  // A program that shows in output and by a file that it ran.
  writeFileSync(evil, `#!/bin/sh\necho STRANGER-RAN >&2\necho STRANGER-RAN\n: > ${mark}\ncat\n`)
  chmodSync(evil, 0o755)
  pristine = checkout()
  const manifest = aManifest(own, { roots: [{ path: tmpdir(), writable: false }] })
  agent = await startAgent(own, { manifest, ...(uid !== undefined && { uid }) })
})
afterEach(() => expect(existsSync(mark)).toBe(false))
afterAll(async () => {
  await agent.stop()
  place.remove()
})

function git(at: string, ...words: string[]): string {
  return execFileSync(
    'git',
    ['-C', at, '-c', 'protocol.file.allow=always', '-c', 'core.hooksPath=/dev/null', ...words],
    {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      env: {
        PATH: process.env.PATH ?? '',
        HOME: '/nonexistent',
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_AUTHOR_NAME: 'a',
        GIT_AUTHOR_EMAIL: 'a@b',
        GIT_COMMITTER_NAME: 'a',
        GIT_COMMITTER_EMAIL: 'a@b',
      },
    },
  )
}

/**
 * A checkout with two commits and a change, owned by the agent's user, so that git itself takes no
 * offence.
 */
function checkout(): string {
  count += 1
  const at = join(place.path, `checkout-${count}`)
  if (count > 1) {
    cpSync(pristine, at, { recursive: true, preserveTimestamps: true })
    return at
  }
  mkdirSync(at)
  git(at, 'init', '-q')
  writeFileSync(join(at, 'a.txt'), 'one\n')
  git(at, 'add', '.')
  git(at, 'commit', '-qm', 'one')
  writeFileSync(join(at, 'a.txt'), 'two\n')
  git(at, 'commit', '-qam', 'two')
  writeFileSync(join(at, 'a.txt'), 'three\n')
  return at
}

function handOver(at: string): void {
  if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${uid}`, at])
}

const attributes = (at: string, line: string) => writeFileSync(join(at, '.gitattributes'), `${line}\n`)

const traps: [string, string, (at: string) => void][] = [
  ['core.fsmonitor', 'status', (at) => git(at, 'config', 'core.fsmonitor', evil)],
  ['diff.external', 'diff -- a.txt', (at) => git(at, 'config', 'diff.external', evil)],
  [
    'a diff driver',
    'diff -- a.txt',
    (at) => {
      git(at, 'config', 'diff.x.command', evil)
      attributes(at, '* diff=x')
    },
  ],
  [
    'textconv',
    'show HEAD -- a.txt',
    (at) => {
      git(at, 'config', 'diff.x.textconv', evil)
      attributes(at, '* diff=x')
    },
  ],
  [
    'a filter',
    'status',
    (at) => {
      git(at, 'config', 'filter.x.clean', evil)
      attributes(at, '* filter=x')
    },
  ],
  [
    'a filter that goes on',
    'diff -- a.txt',
    (at) => {
      git(at, 'config', 'filter.x.process', evil)
      attributes(at, '* filter=x')
    },
  ],
  [
    'a program for signatures',
    'log --format=%GS',
    (at) => {
      git(at, 'config', 'gpg.program', evil)
      git(at, 'config', 'log.showSignature', 'true')
    },
  ],
  ['an alias', 'status', (at) => git(at, 'config', 'alias.status', `!${evil}`)],
  [
    'an include',
    'status',
    (at) => {
      writeFileSync(join(at, '.git/more'), `[core]\n\tfsmonitor = ${evil}\n`)
      git(at, 'config', 'include.path', 'more')
    },
  ],
  ['a pager', 'log', (at) => git(at, 'config', 'core.pager', evil)],
  ['a pager of the command', 'blame a.txt', (at) => git(at, 'config', 'pager.blame', evil)],
  [
    'a promisor remote',
    'log -p -- a.txt',
    (at) => {
      git(at, 'config', 'remote.origin.url', `ssh://nobody@127.0.0.1/x`)
      git(at, 'config', 'remote.origin.promisor', 'true')
      git(at, 'config', 'extensions.partialClone', 'origin')
      git(at, 'config', 'core.sshCommand', evil)
      const blob = git(at, 'rev-parse', 'HEAD~1:a.txt').trim()
      execFileSync('rm', ['-f', join(at, '.git/objects', blob.slice(0, 2), blob.slice(2))])
    },
  ],
  [
    'a submodule',
    'status',
    (at) => {
      const inner = checkout()
      git(at, 'submodule', '--quiet', 'add', inner, 'inner')
      git(at, 'commit', '-qm', 'inner')
      git(join(at, 'inner'), 'config', 'core.fsmonitor', evil)
    },
  ],
  [
    'a submodule that no file names',
    'diff --stat',
    (at) => {
      const inner = join(at, 'deep/er')
      mkdirSync(inner, { recursive: true })
      git(inner, 'init', '-q')
      writeFileSync(join(inner, 'b'), 'x')
      git(inner, 'add', '.')
      git(inner, 'commit', '-qm', 'x')
      git(at, 'add', 'deep/er')
      git(inner, 'config', 'filter.x.clean', evil)
      attributes(inner, '* filter=x')
    },
  ],
  [
    "a work tree's own settings",
    'status',
    (at) => {
      git(at, 'config', 'extensions.worktreeConfig', 'true')
      git(at, 'config', '--worktree', 'core.fsmonitor', evil)
    },
  ],
  ['a work tree elsewhere', 'diff --stat', (at) => git(at, 'config', 'core.worktree', '/etc')],
  [
    'a repository that looks bare',
    'status',
    (at) => {
      execFileSync('sh', ['-c', 'mv .git/* . && rm -r .git'], { cwd: at })
      git(at, 'config', '--file', 'config', 'core.bare', 'false')
      git(at, 'config', '--file', 'config', 'core.worktree', '.')
      git(at, 'config', '--file', 'config', 'core.fsmonitor', evil)
    },
  ],
]

describe('a foreign checkout', () => {
  test.each(traps)('%s: an unasked git starts nothing, alone or beside what sees more', async (_, words, set) => {
    const at = checkout()
    set(at)
    handOver(at)
    const git = `git ${words}`
    for (const text of [git, `git -C ${at} ${words}`, `ss -tln; ${git}`, `${git}; findmnt /`, `cd ${at} && ${git}`]) {
      const { answer } = await agent.call('shell.eval', { text, cwd: text.includes(at) ? '/' : at })
      expect([text, answer.error?.code, answer.approval_status]).toEqual([text, 'approval_required', 'required'])
      expect(answer.result).toBeNull()
    }
    const { answer } = await agent.call('shell.exec', { argv: ['git', ...words.split(' ')], cwd: at })
    expect(answer.error).toMatchObject({ code: 'approval_required', message: expect.stringContaining('git') })
  })

  test('gives its answer after an approval, and the command runs confined', async () => {
    const at = checkout()
    git(at, 'config', 'alias.st', 'status')
    handOver(at)
    const asked = await agent.call('shell.eval', { text: 'git status --short', cwd: at })
    expect(asked.answer.error?.message).toBe(
      `The call needs a grant now: git: git would use its setting alias.st in ${at}.`,
    )
    const { answer } = await agent.granted('shell.eval', { text: 'git status --short', cwd: at })
    expect(answer).toMatchObject({ ok: true, approval_status: 'granted', result: { stdout: ' M a.txt\n' } })
  })

  test('gives the same answer to a caller that follows it, also later', async () => {
    const at = checkout()
    git(at, 'config', 'core.fsmonitor', evil)
    handOver(at)
    const { answer } = await agent.call('shell.eval', { text: 'git status', cwd: at }, { stream: true })
    expect(answer.status).toBe('running')
    const path = `/operations/${answer.request_id}`
    const ended = await eventually('the end of it', async () => {
      const response = await fetch(`${agent.url}${path}`, { headers: aLeave(path, own.control) })
      return response.status === 202 ? undefined : ((await response.json()) as CapabilityAnswer)
    })
    expect(ended).toMatchObject({ ok: false, approval_status: 'required', error: { code: 'approval_required' } })
  })

  test('is read without approval if it is ordinary, also through a submodule and from below', async () => {
    const at = checkout()
    mkdirSync(join(at, 'sub/dir'), { recursive: true })
    git(at, 'submodule', '--quiet', 'add', checkout(), 'inner')
    git(at, 'commit', '-qm', 'inner')
    handOver(at)
    for (const [cwd, text, printed] of [
      [at, 'git status --short', ' M a.txt\n'],
      [join(at, 'sub/dir'), 'git status --short', ' M ../../a.txt\n'],
      [join(at, 'inner'), 'git log --format=%s', 'two\none\n'],
      [at, 'git diff --stat', ' a.txt | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n'],
      [at, 'git log -1 --format=%s && git branch --show-current | wc -l', 'inner\n1\n'],
    ] as const) {
      const { answer } = await agent.call('shell.eval', { text, cwd })
      expect([text, answer.error, answer.result?.stdout]).toEqual([text, null, printed])
    }
  })
})

describe('settings in the place of other programs', () => {
  test.each([
    ['a compose file here', 'docker compose ps', 'compose.yaml', 'include:\n  - https://192.0.2.1/x\n'],
    ['settings of npm here', 'npm ls', '.npmrc', 'node-options=--require ./evil.js\n'],
    ['a tool chain here', 'cargo --version', 'rust-toolchain.toml', '[toolchain]\npath = "."\n'],
    ['a server of supervisor here', 'supervisorctl status', 'supervisord.conf', '[ctlplugin:x]\n'],
  ])('%s: asked', async (_, text, name, content) => {
    const at = join(place.path, `place-${++count}`)
    mkdirSync(join(at, 'below'), { recursive: true })
    writeFileSync(join(at, name), content)
    const { answer } = await agent.call('shell.eval', { text, cwd: at })
    expect(answer.error).toMatchObject({ code: 'approval_required', message: expect.stringContaining(join(at, name)) })
  })

  test('a file that haproxy checks may contain code, so it has to be root’s', async () => {
    writeFileSync(join(place.path, 'ha.cfg'), 'global\n  lua-load /tmp/x.lua\n')
    const { answer } = await agent.call('shell.exec', { argv: ['haproxy', '-c', '-f', join(place.path, 'ha.cfg')] })
    expect(answer.error?.code).toBe('approval_required')
  })
})

describe("the agent's own state", () => {
  const secret = 'only-the-agent-knows-this'
  let link = ''
  beforeAll(() => {
    const refresh = join(agent.state, 'refresh.json')
    writeFileSync(refresh, secret, { mode: 0o600 })
    if (uid !== undefined) chownSync(refresh, uid, uid)
    link = join(place.path, 'link')
    symlinkSync(agent.state, link)
  })

  test('is returned to nobody as a file', async () => {
    for (const capability of ['fs.read', 'fs.stat'] as const) {
      const { answer } = await agent.call(capability, { path: join(agent.state, 'root-key') })
      expect([capability, answer.error?.code]).toEqual([capability, 'outside_roots'])
    }
  })

  test('needs an approval if it is named', async () => {
    for (const argv of [
      ['cat', `${agent.state}/refresh.json`],
      ['ls', agent.state],
      ['cat', `/proc/${agent.pid}/cwd/x`],
      ['grep', '-r', 'x', join(agent.state, '..')],
    ]) {
      const { answer } = await agent.call('shell.exec', { argv })
      expect([argv, answer.error?.code]).toEqual([argv, 'approval_required'])
    }
  })

  test.each(['', '; ss -tln', '; findmnt /'])('is not found by an unknown way (%s)', async (beside) => {
    const text = `cat ${link}/refresh.json ${link}/head.json; find ${link}/ -name '*'; ls -R ${link}/journal/${beside}`
    const { answer } = await agent.call('shell.eval', { text })
    expect(answer).toMatchObject({ ok: true, approval_status: 'auto_approved' })
    const { stdout, stderr } = answer.result as { stdout: string; stderr: string }
    expect(stderr).toContain(`${link}/refresh.json: No such file or directory`)
    expect(stdout).not.toContain(secret)
    expect(stdout).toContain(`${link}/\n`)
    expect(stdout).not.toContain(`${link}/journal`)
  })
})
