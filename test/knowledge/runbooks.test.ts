import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type ConfigError, knowledgeSettings, readConfig } from '../../config/settings.ts'
import type { Runbook } from '../../domain/runbook.ts'
import { describeKnowledge, matchRunbooks, openKnowledge, type Subject } from '../../knowledge/knowledge.ts'
import { readFolder } from '../../knowledge/read.ts'
import { tools } from '../../tools/registry.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { withoutHanging } from '../support/endless.ts'

const place = temporaryDirectory()
afterAll(place.remove)
const shippedFolder = fileURLToPath(new URL('../../knowledge/', import.meta.url))

const about = (name: string, more = '', body = 'Look first.') =>
  `---\nname: ${name}\ndescription: How ${name} is looked at\n${more}---\n${body}\n`
function put(folder: string, name: string, text: string | Uint8Array = about(name)): void {
  mkdirSync(join(place.path, folder, name), { recursive: true })
  writeFileSync(join(place.path, folder, name, 'SKILL.md'), text)
}

describe('the runbooks that ship with the product', () => {
  let shipped: Runbook[] = []
  beforeAll(async () => {
    const { runbooks, refused } = await readFolder('shipped', shippedFolder)
    expect(refused).toEqual([])
    shipped = runbooks
  })

  test('each is short, says who reviewed it when, and says look, decide, repair, prove', () => {
    expect(shipped.length).toBeGreaterThanOrEqual(15)
    for (const { name, bytes, body, owner, reviewedAt } of shipped) {
      expect([name, bytes <= 1_536, owner, reviewedAt]).toEqual([name, true, 'nightshift', expect.any(String)])
      const places = ['Look', 'Decide', 'Repair', 'Prove'].map((word) => body.search(new RegExp(`^${word}`, 'm')))
      expect([name, places]).toEqual([name, [...places].sort((a, b) => a - b)])
      expect([name, places[0]]).toEqual([name, 0])
    }
  })

  test('every tool that one names is there, and every runbook that one names too', () => {
    const names = new Set(shipped.map(({ name }) => name))
    const fields = new Set(['unplaced', 'overtakenBy', 'on', 'port', '.1', '.gz'])
    for (const { name, body } of shipped) {
      const named = [...body.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word).filter((word) => !fields.has(word))
      expect([name, named.filter((word) => !tools.has(word))]).toEqual([name, []])
      const others = [...body.matchAll(/runbook ([a-z]+(?:-[a-z]+)+)/g)].map(([, other = '']) => other)
      expect([name, others.filter((other) => !names.has(other))]).toEqual([name, []])
    }
  })

  test.each([
    ['replication_lag', 'shard', 'replication-lag'],
    ['service_down', 'node', 'service-down'],
    ['disk_pressure', 'node', 'disk-full'],
    ['config_drift', 'node', 'config-drift'],
    ['runaway_process', 'node', 'runaway-process'],
    ['bad_deploy', 'node', 'bad-deploy'],
    ['missing_package', 'node', 'missing-package'],
    ['host_down', 'host', 'host-down'],
    ['host_draining', 'host', 'host-draining'],
    ['HighErrorRate', 'node', 'error-rate'],
    ['ServiceMemoryHigh', 'node', 'out-of-memory'],
    ['NodeFilesystemAlmostOutOfSpace', 'host', 'disk-full'],
    ['KubeContainerOOMKilled', 'container', 'out-of-memory'],
    ['NginxProcessCpuHighFor10m', 'service_unit', 'runaway-process'],
  ] as const)('an incident %s of a %s gets %s', (type, kind, name) => {
    expect(matchRunbooks(shipped, { type, kind, words: '' }).chosen?.name).toBe(name)
  })

  test('what the log says finds the others by name: a port that is in use is told beside a service that is down', () => {
    const words = 'nginx does not start: bind() failed, address already in use by another process on port 80'
    const { chosen, others } = matchRunbooks(shipped, { type: 'service_down', kind: 'node', words })
    expect([chosen?.name, others.map(({ name }) => name)]).toEqual([
      'service-down',
      expect.arrayContaining(['port-in-use']),
    ])
  })

  test('what no runbook is about gets none', () => {
    expect(matchRunbooks(shipped, { type: 'Fnord', kind: 'tenant', words: 'blinking lights' })).toEqual({
      chosen: null,
      others: [],
    })
  })
})

describe('a match', () => {
  const runbook = (name: string, more: Partial<Runbook> = {}): Runbook => ({
    ...{ name, description: '', incidentTypes: [], resourceKinds: [], owner: null, reviewedAt: null },
    ...{ origin: 'folder', replaces: [], digest: '', bytes: 1, body: 'x', ...more },
  })
  const nameFor = (list: Runbook[], subject: Partial<Subject> & { type: string }) =>
    matchRunbooks(list, { kind: null, words: '', ...subject }).chosen?.name ?? null

  test('goes by type, then by the longest pattern, then by kind, in whatever order the files are', () => {
    const list = [
      runbook('kind', { resourceKinds: ['node'] }),
      runbook('wide', { incidentTypes: ['Disk*'] }),
      runbook('narrow', { incidentTypes: ['Disk*Full'] }),
      runbook('exact', { incidentTypes: ['DiskAlmostFull'] }),
    ]
    for (const each of [list, list.toReversed()]) {
      expect(nameFor(each, { type: 'diskalmostfull', kind: 'node' })).toBe('exact')
      expect(nameFor(each, { type: 'DiskVeryFull', kind: 'node' })).toBe('narrow')
      expect(nameFor(each, { type: 'DiskSlow', kind: 'node' })).toBe('wide')
      expect(nameFor(each, { type: 'Fnord', kind: 'node' })).toBe('kind')
      expect(nameFor(each, { type: 'Fnord', kind: 'host' })).toBeNull()
    }
  })

  test('a runbook for hosts is not given to a node, and one that names its types not to another type of its kind', () => {
    const list = [runbook('hosts', { incidentTypes: ['down', 'HostDown'], resourceKinds: ['host'] })]
    expect(nameFor(list, { type: 'down', kind: 'node' })).toBeNull()
    expect(nameFor(list, { type: 'slow', kind: 'host' })).toBeNull()
    expect(nameFor(list, { type: 'down' })).toBe('hosts')
  })

  test('words alone add a name and never a text, and two at most are named', () => {
    const list = ['printer-jam', 'printer-toner', 'printer-paper', 'other'].map((name) =>
      runbook(name, { description: `printer trouble of ${name}` }),
    )
    const { chosen, others } = matchRunbooks(list, { type: 'x', kind: null, words: 'printer jam toner paper trouble' })
    expect([chosen, others.length, others[0]?.why]).toEqual([null, 2, 'words'])
  })

  test('a pattern of many stars is read to its end', () => {
    const list = [runbook('stars', { incidentTypes: [`${'*a'.repeat(45)}b`] })]
    expect(withoutHanging(() => nameFor(list, { type: 'a'.repeat(200) }))).toBeNull()
  })
})

describe("a site's own folder", () => {
  const open = (folder: string) => openKnowledge({ path: join(place.path, folder) })

  test('its file goes before the shipped one of the same name, and the list and Health say so', async () => {
    put(
      'own',
      'host-down',
      about('host-down', 'incident_types: [host_down]\nowner: sre\nreviewed_at: 2026-10-01\n', 'Call Kari.'),
    )
    put('own', 'printer-jam')
    const knowledge = open('own')
    await knowledge.refresh()
    expect(knowledge.show('host-down')).toMatchObject({
      ...{ origin: 'folder', replaces: ['shipped'], owner: 'sre', reviewedAt: '2026-10-01', body: 'Call Kari.' },
    })
    expect(knowledge.match({ type: 'host_down', kind: 'host', words: '' }).chosen?.body).toBe('Call Kari.')
    const { isWell, detail } = describeKnowledge(knowledge.list())
    expect([isWell, detail]).toEqual([
      true,
      expect.stringMatching(/^16 runbooks: 14 shipped, 2 of the site's folder\. .*host-down\.$/),
    ])
  })

  test('what is changed, added and removed is there at the next reading', async () => {
    put('moving', 'one')
    const knowledge = open('moving')
    await knowledge.refresh()
    put('moving', 'one', about('one', '', 'Other words.'))
    put('moving', 'two')
    await knowledge.refresh()
    expect([knowledge.show('one')?.body, knowledge.show('two')?.name]).toEqual(['Other words.', 'two'])
    rmSync(join(place.path, 'moving', 'two'), { recursive: true })
    await knowledge.refresh()
    expect(knowledge.show('two')).toBeNull()
  })

  test.each([
    ['no-head', 'Just text.', /does not begin with front matter/],
    ['no-yaml', '---\nname: [\n---\nx', /is no YAML/],
    ['other-name', about('another'), /its name is another and its folder is other-name/],
    ['no-description', '---\nname: no-description\n---\nx', /description/],
    ['odd-field', about('odd-field', 'approves: everything\n'), /Unrecognized key.*approves/],
    ['odd-kind', about('odd-kind', 'resource_kinds: [printer]\n'), /resource_kinds/],
    ['any-type', about('any-type', 'incident_types: ["*"]\n'), /leave incident_types out/],
    ['odd-date', about('odd-date', 'reviewed_at: yesterday\n'), /reviewed_at/],
    ['two-lines', about('two-lines', 'owner: "a\\nb"\n'), /owner takes one line/],
    ['aliases', '---\nname: aliases\ndescription: &a x\nowner: *a\n---\nx', /front matter is wrong/],
    ['says-nothing', about('says-nothing', '', ''), /says nothing/],
    ['too-large', about('too-large', '', 'x'.repeat(40_000)), /has 4\d{4} bytes, and 32768 are the most/],
    ['no-utf8', Buffer.concat([Buffer.from(about('no-utf8')), Buffer.from([0xff, 0xfe])]), /is not UTF-8/],
  ])('a bad file %s is refused by its name with the remedy, and the others are taken', async (name, text, why) => {
    const folder = `bad-${name}`
    put(folder, name, text)
    put(folder, 'good')
    const { runbooks, refused } = await readFolder('folder', join(place.path, folder))
    expect(runbooks.map((each) => each.name)).toEqual(['good'])
    expect(refused).toEqual([
      {
        origin: 'folder',
        file: `${name}/SKILL.md`,
        why: expect.stringMatching(why),
        remedy: expect.stringMatching(/\w{4}/),
      },
    ])
  })

  test('a link that leads out of it is refused, and one that stays inside is read', async () => {
    writeFileSync(join(place.path, 'secret'), about('steals'))
    mkdirSync(join(place.path, 'links', 'steals'), { recursive: true })
    symlinkSync(join(place.path, 'secret'), join(place.path, 'links', 'steals', 'SKILL.md'))
    symlinkSync(place.path, join(place.path, 'links', 'own'))
    mkdirSync(join(place.path, 'links', '..data', 'mounted'), { recursive: true })
    writeFileSync(join(place.path, 'links', '..data', 'mounted', 'SKILL.md'), about('mounted'))
    symlinkSync('..data/mounted', join(place.path, 'links', 'mounted'))
    const { runbooks, refused } = await readFolder('folder', join(place.path, 'links'))
    expect(runbooks.map(({ name }) => name)).toEqual(['mounted'])
    expect(refused).toMatchObject([{ file: 'steals/SKILL.md', why: 'a symbolic link leads out of its place' }])
  })

  test('a secret in a runbook is taken out before anybody reads it', async () => {
    put('secrets', 'leaky', about('leaky', '', 'Log in with postgres://root:hunter2secret@db-1/shop.\u202e'))
    const [leaky] = (await readFolder('folder', join(place.path, 'secrets'))).runbooks
    expect(leaky?.body).toContain('Log in with')
    expect(leaky?.body).not.toMatch(/hunter2secret|\u202e/)
  })

  test('a folder that is not there is said, and what ships is taken all the same', async () => {
    const knowledge = open('nowhere')
    await knowledge.refresh()
    expect(knowledge.list().places).toMatchObject([{ origin: 'folder', error: 'it could not be read (ENOENT)' }])
    expect(knowledge.show('host-down')?.origin).toBe('shipped')
    expect(describeKnowledge(knowledge.list())).toMatchObject({
      isWell: false,
      detail: expect.stringContaining('The folder was not read'),
    })
  })

  test('more than 300 runbooks are cut, and the list says so', async () => {
    for (let index = 0; index < 302; index++) put('many', `r-${index}`)
    const { runbooks, refused } = await readFolder('folder', join(place.path, 'many'))
    expect([runbooks.length, refused.map(({ why }) => why)]).toEqual([
      300,
      ['the place has 302 runbooks, and 300 are the most'],
    ])
  })
})

describe("a site's own repository", () => {
  const work = join(place.path, 'work')
  const bare = join(place.path, 'bare.git')
  const env = { PATH: process.env.PATH, HOME: place.path, GIT_CONFIG_NOSYSTEM: '1' }
  const git = (cwd: string, ...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'protocol.file.allow=always', ...words], {
      ...{ cwd, env, encoding: 'utf8' },
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

  test('is cloned and followed: a new commit is there at the next reading, and nothing is left on the disk', async () => {
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

  test('links, submodules, hooks and filters of it do nothing, and what cannot be taken is refused by its name', async () => {
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
      { file: 'huge/SKILL.md', why: expect.stringContaining('32768 are the most') },
      { file: 'module/SKILL.md', why: 'it is not a plain file' },
      { file: 'steals/SKILL.md', why: 'it is a symbolic link' },
    ])
    expect(() => readFileSync(marker)).toThrow('ENOENT')
    expect(knowledge.show('host-down')?.origin).toBe('repository')
  })

  test('while it is away what was read stays, the list says why, and no credential shows', async () => {
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

  test('its address is refused where it holds a password, names another protocol, or a token goes to something else', () => {
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
      expect.stringContaining('KNOWLEDGE_REPO is not an https://'),
    ])
    expect(problems({ KNOWLEDGE_REPO: 'ssh://git@h/x.git', KNOWLEDGE_REPO_TOKEN: 't' })).toHaveLength(1)
    expect(problems({ KNOWLEDGE_REPO: 'https://h/x.git#--upload-pack=x' })).toHaveLength(1)
    expect(problems({ KNOWLEDGE_REPO_TOKEN: 't' })).toHaveLength(1)
    expect(problems({ KNOWLEDGE_PATH: 'knowledge' })).toEqual(['KNOWLEDGE_PATH is not an absolute path'])
    expect(knowledgeSettings(readConfig({ KNOWLEDGE_REPO: 'https://h/x.git#main' }))).toEqual({
      path: null,
      repository: { url: 'https://h/x.git', branch: 'main', token: null },
    })
  })
})

function leftovers(): string[] {
  return readdirSync(process.env.TMPDIR ?? '/tmp').filter((name) => name.startsWith('nightshift-knowledge-'))
}
