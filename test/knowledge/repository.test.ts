import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type ConfigError, knowledgeSettings, readConfig } from '../../config/settings.ts'
import { openKnowledge } from '../../knowledge/knowledge.ts'
import { temporaryDirectory } from '../support/directory.ts'

const place = temporaryDirectory()

afterAll(place.remove)

const about = (name: string, more = '', body = 'Look first.') =>
  `---\nname: ${name}\ndescription: How ${name} is looked at\n${more}---\n${body}\n`

function put(folder: string, name: string, text: string | Uint8Array = about(name)): void {
  mkdirSync(join(place.path, folder, name), { recursive: true })
  writeFileSync(join(place.path, folder, name, 'SKILL.md'), text)
}

function leftovers(): string[] {
  return readdirSync(process.env.TMPDIR ?? '/tmp').filter((name) => name.startsWith('nightshift-knowledge-'))
}

describe("a site's own repository", () => {
  const work = join(place.path, 'work')
  const bare = join(place.path, 'bare.git')
  const env = { PATH: process.env.PATH, HOME: place.path, GIT_CONFIG_NOSYSTEM: '1' }
  const git = (cwd: string, ...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'protocol.file.allow=always', ...words], {
      cwd,
      env,
      encoding: 'utf8',
    }).trim()
  const commit = () => {
    git(work, 'add', '--all')
    git(work, 'commit', '--quiet', '--message', 'change')
    git(work, 'push', '--quiet', bare, 'main', '--force')
    return git(work, 'rev-parse', 'HEAD')
  }
  beforeAll(() => {
    execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', bare], { env })
    execFileSync('git', ['init', '--quiet', '--initial-branch=main', work], { env })
  })
  const open = (branch: string | null = null, url = `file://${bare}`) =>
    openKnowledge({ repository: { url, branch, token: 'canary-token-8731' } })
  const inWork = (name: string, text = about(name)) => put('work', name, text)

  test('is cloned and followed: a new commit applies at the next reading, and nothing is left on the disk', async () => {
    const before = leftovers()
    inWork('host-down', about('host-down', '', 'From the repository.'))
    inWork('knowledge/nested', about('nested'))
    const first = commit()
    const knowledge = open()
    await knowledge.refresh()
    expect(knowledge.show('host-down')).toMatchObject({ origin: 'repository', replaces: ['shipped'] })
    expect(knowledge.show('nested')?.origin).toBe('repository')
    expect(knowledge.list().places).toMatchObject([
      { origin: 'repository', at: `file://${bare}`, commit: first, error: null },
    ])
    inWork('host-down', about('host-down', '', 'Changed.'))
    const second = commit()
    await knowledge.refresh()
    expect([knowledge.show('host-down')?.body, knowledge.list().places[0]?.commit]).toEqual(['Changed.', second])
    expect(leftovers()).toEqual(before)
  })

  test('has no effect through links, submodules, hooks and filters, and refused files are named', async () => {
    const marker = join(place.path, 'ran')
    mkdirSync(join(work, 'steals'), { recursive: true })
    symlinkSync('/etc/passwd', join(work, 'steals', 'SKILL.md'))
    writeFileSync(join(work, '.gitattributes'), '* filter=evil\n')
    inWork('huge', about('huge', '', 'x'.repeat(50_000)))
    git(work, 'update-index', '--add', '--cacheinfo', `160000,${git(work, 'rev-parse', 'HEAD')},module/SKILL.md`)
    writeFileSync(join(bare, 'hooks', 'post-checkout'), `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
    writeFileSync(join(place.path, '.gitconfig'), `[filter "evil"]\n\tsmudge = touch ${marker}\n`)
    git(work, 'add', '--', 'steals', 'huge', '.gitattributes')
    git(work, 'commit', '--quiet', '--message', 'evil')
    git(work, 'push', '--quiet', bare, 'main', '--force')
    const knowledge = open()
    await knowledge.refresh()
    expect(knowledge.list().refused).toMatchObject([
      { file: 'huge/SKILL.md', why: expect.stringContaining('at most 32768 are allowed') },
      { file: 'module/SKILL.md', why: 'it is not a plain file' },
      { file: 'steals/SKILL.md', why: 'it is a symbolic link' },
    ])
    expect(() => readFileSync(marker)).toThrow('ENOENT')
    expect(knowledge.show('host-down')?.origin).toBe('repository')
  })

  test('keeps the last reading while it is away, the list says why, and no credential is shown', async () => {
    const knowledge = open()
    await knowledge.refresh()
    const gone = `${bare}.gone`
    execFileSync('mv', [bare, gone])
    await knowledge.refresh()
    const { places } = knowledge.list()
    expect(places).toMatchObject([
      { origin: 'repository', error: expect.stringMatching(/does not appear|does not exist/) },
    ])
    expect(knowledge.show('host-down')?.origin).toBe('repository')
    execFileSync('mv', [gone, bare])
    const https = open(null, 'https://127.0.0.1:1/site.git')
    await https.refresh()
    expect(https.list().places[0]?.error).toMatch(/127\.0\.0\.1/)
    expect(JSON.stringify([places, https.list()])).not.toMatch(/canary-token-8731|Basic/)
    const none = open('no-such-branch')
    await none.refresh()
    expect(none.list().places[0]?.error).toMatch(/branch no-such-branch not found/)
  })

  test('has its address refused if it contains a password, names another protocol, or sends a token elsewhere', () => {
    const problems = (environment: Record<string, string>): string[] => {
      try {
        readConfig(environment)
        return []
      } catch (error) {
        return (error as ConfigError).problems
      }
    }
    expect(problems({ KNOWLEDGE_REPO: 'https://me:pw@git.example.com/x.git' })).toEqual([
      'KNOWLEDGE_REPO holds a user or a password: set KNOWLEDGE_REPO_TOKEN instead',
    ])
    expect(problems({ KNOWLEDGE_REPO: 'ext::sh -c id' })).toEqual([
      expect.stringContaining('KNOWLEDGE_REPO: is not an https://'),
    ])
    expect(problems({ KNOWLEDGE_REPO: 'ssh://git@h/x.git', KNOWLEDGE_REPO_TOKEN: 't' })).toHaveLength(1)
    expect(problems({ KNOWLEDGE_REPO: 'https://h/x.git#--upload-pack=x' })).toHaveLength(1)
    expect(problems({ KNOWLEDGE_REPO_TOKEN: 't' })).toHaveLength(1)
    expect(problems({ KNOWLEDGE_PATH: 'knowledge' })).toEqual(['KNOWLEDGE_PATH: is not an absolute path'])
    expect(knowledgeSettings(readConfig({ KNOWLEDGE_REPO: 'https://h/x.git#main' }))).toEqual({
      path: null,
      repository: { url: 'https://h/x.git', branch: 'main', token: null },
    })
  })
})
