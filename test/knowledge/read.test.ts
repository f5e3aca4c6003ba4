import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from '@jest/globals'
import { describeKnowledge, openKnowledge } from '../../knowledge/knowledge.ts'
import { readFolder } from '../../knowledge/read.ts'
import { temporaryDirectory } from '../support/directory.ts'

const place = temporaryDirectory()

afterAll(place.remove)

const about = (name: string, more = '', body = 'Look first.') =>
  `---\nname: ${name}\ndescription: How ${name} is looked at\n${more}---\n${body}\n`

function put(folder: string, name: string, text: string | Uint8Array = about(name)): void {
  mkdirSync(join(place.path, folder, name), { recursive: true })
  writeFileSync(join(place.path, folder, name, 'SKILL.md'), text)
}

describe("a site's own folder", () => {
  const open = (folder: string) => openKnowledge({ path: join(place.path, folder) })

  test('its file replaces the shipped one of the same name, and the list and Health show it', async () => {
    put(
      'own',
      'host-down',
      about('host-down', 'incident_types: [host_down]\nowner: sre\nreviewed_at: 2026-10-01\n', 'Call Kari.'),
    )
    put('own', 'printer-jam')
    const knowledge = open('own')
    await knowledge.refresh()
    expect(knowledge.show('host-down')).toMatchObject({
      origin: 'folder',
      replaces: ['shipped'],
      owner: 'sre',
      reviewedAt: '2026-10-01',
      body: 'Call Kari.',
    })
    expect(knowledge.match({ type: 'host_down', kind: 'host', words: '' }).chosen?.body).toBe('Call Kari.')
    const { isWell, detail } = describeKnowledge(knowledge.list())
    expect([isWell, detail]).toEqual([
      true,
      expect.stringMatching(/^38 runbooks: 36 shipped, 2 of the site's folder\. .*host-down\.$/),
    ])
  })

  test('changed, added and removed files apply at the next reading', async () => {
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
    ['no-yaml', '---\nname: [\n---\nx', /is not valid YAML/],
    ['other-name', about('another'), /the runbook's name is another and its folder is other-name/],
    ['no-description', '---\nname: no-description\n---\nx', /description/],
    ['odd-field', about('odd-field', 'approves: everything\n'), /"approves" is not known here/],
    ['odd-kind', about('odd-kind', 'resource_kinds: [printer]\n'), /resource_kinds/],
    ['any-type', about('any-type', 'incident_types: ["*"]\n'), /leave incident_types out/],
    ['odd-date', about('odd-date', 'reviewed_at: yesterday\n'), /reviewed_at/],
    ['two-lines', about('two-lines', 'owner: "a\\nb"\n'), /owner: must be one line/],
    ['aliases', '---\nname: aliases\ndescription: &a x\nowner: *a\n---\nx', /front matter is not valid/],
    ['says-nothing', about('says-nothing', '', ''), /has no text/],
    ['too-large', about('too-large', '', 'x'.repeat(40_000)), /has 4\d{4} bytes, and at most 32768 are allowed/],
    ['no-utf8', Buffer.concat([Buffer.from(about('no-utf8')), Buffer.from([0xff, 0xfe])]), /is not UTF-8/],
  ])('a bad file %s is refused by its name with the remedy, and the others are used', async (name, text, why) => {
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
    expect(refused).toMatchObject([{ file: 'steals/SKILL.md', why: 'a symbolic link points out of its folder' }])
  })

  test('a secret in a runbook is removed before anybody reads it', async () => {
    put('secrets', 'leaky', about('leaky', '', 'Log in with postgres://root:hunter2secret@db-1/shop.\u202e'))
    const [leaky] = (await readFolder('folder', join(place.path, 'secrets'))).runbooks
    expect(leaky?.body).toContain('Log in with')
    expect(leaky?.body).not.toMatch(/hunter2secret|\u202e/)
  })

  test('a missing folder is reported, and the shipped runbooks are used', async () => {
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
      ['the folder has 302 runbooks, and at most 300 are allowed'],
    ])
  })
})
