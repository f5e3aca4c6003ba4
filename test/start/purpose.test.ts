import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { version } from '../../domain/version.ts'
import { claimState, purposeOf, refuseSharedStores, runningStarts, stateDirFor } from '../../start/purpose.ts'
import { type LocalRun, writeRunFile } from '../../start/run-file.ts'
import { temporaryDirectory } from '../support/directory.ts'

let checkout: ReturnType<typeof temporaryDirectory>
let lab: string
let site: string

beforeEach(() => {
  checkout = temporaryDirectory()
  lab = join(checkout.path, '.nightshift')
  site = join(checkout.path, '.nightshift-site')
})
afterEach(() => checkout.remove())

/** What a start of a version before there were purposes left there. */
function leave(dir: string, own: Partial<LocalRun> = {}): void {
  mkdirSync(dir, { recursive: true })
  writeRunFile(dir, {
    ...{ url: 'http://127.0.0.1:1', temporalAddress: '', temporalUiUrl: null, labUrl: null, labControlToken: null },
    ...{ databaseUrl: 'postgresql://postgres:old@127.0.0.1:5433/nightshift', tokens: {}, pid: null },
    ...own,
  })
}

function claim(dir: string, purpose: 'lab' | 'site'): void {
  mkdirSync(dir, { recursive: true })
  claimState(dir, purpose)
}

test('the lab and a site of one checkout have two folders, and each is claimed once', () => {
  expect([stateDirFor(checkout.path, 'lab'), stateDirFor(checkout.path, 'site')]).toEqual([lab, site])
  for (const [dir, purpose] of [
    [lab, 'lab'],
    [site, 'site'],
    [lab, 'lab'],
    [site, 'site'],
  ] as const)
    claim(dir, purpose)
  expect(() => claim(lab, 'site')).toThrow('has the lab, and a site needs its own folder')
  expect(() => claim(site, 'lab')).toThrow('has a site, and the lab needs its own folder')
})

test('a platform of the environment makes a start a site, whatever else is set', () => {
  expect([purposeOf({}, true), purposeOf({}, false)]).toEqual(['lab', 'site'])
  for (const name of ['CORE_API_URL', 'PLATFORM_URL', 'PROXMOX_URL']) {
    expect([name, purposeOf({ [name]: 'http://127.0.0.1:1' }, true)]).toEqual([name, 'site'])
  }
})

test("the folder of an earlier version's lab is the lab, and a site beside it begins empty", () => {
  leave(lab, { labUrl: 'http://127.0.0.1:2' })
  mkdirSync(`${lab}-lab`)
  expect(stateDirFor(checkout.path, 'site')).toBe(site)
  claim(lab, 'lab')
  claim(site, 'site')
})

test('a site that an earlier version kept in the folder of the lab stays there until a person moves it', () => {
  leave(lab)
  expect(stateDirFor(checkout.path, 'site')).toBe(lab)
  const before = readdirSync(lab)
  expect(() => claim(lab, 'lab')).toThrow(`mv ${lab} ${site}, then "npm start"`)
  expect(readdirSync(lab)).toEqual(before)
  claim(lab, 'site')
  expect(stateDirFor(checkout.path, 'site')).toBe(lab)
  // As the sentence says.
  renameSync(lab, site)
  expect(stateDirFor(checkout.path, 'site')).toBe(site)
  claim(lab, 'lab')
  claim(site, 'site')
})

test('a folder with a site among the hosts of a lab is refused to both, with both ways out', () => {
  leave(lab)
  mkdirSync(`${lab}-lab`)
  const before = readdirSync(lab)
  for (const purpose of ['lab', 'site'] as const)
    expect(() => claim(lab, purpose)).toThrow(/has hosts of the lab and of a site.*mv .*-before.*To undo this/s)
  expect(readdirSync(lab)).toEqual(before)
  renameSync(lab, `${lab}-before`)
  claim(lab, 'lab')
  claim(site, 'site')
  // Named, it starts as the site that it was.
  claim(`${lab}-before`, 'site')
})

test('a folder that a newer version used is refused, and one of an older version is accepted', () => {
  const wrote = (by: string) =>
    writeFileSync(join(site, 'purpose.json'), JSON.stringify({ purpose: 'site', version: by }))
  mkdirSync(site)
  for (const newer of ['99.0.0', '0.100.0', `${version.split('.').slice(0, 2).join('.')}.99`]) {
    wrote(newer)
    expect(() => claim(site, 'site')).toThrow(`was last used by Nightshift ${newer}, and this is ${version}`)
  }
  wrote('0.1.9')
  claim(site, 'site')
})

test('the database of one is refused to the other, with any login', () => {
  leave(site)
  const given = { DATABASE_URL: 'postgres://another:login@localhost:5433/nightshift?sslmode=disable' }
  expect(() => refuseSharedStores(checkout.path, lab, 'lab', given)).toThrow(`the database of your site (${site})`)
  refuseSharedStores(checkout.path, lab, 'lab', { DATABASE_URL: 'postgres://localhost:5433/lab' })
  refuseSharedStores(checkout.path, site, 'site', given)
})

test('a start is found while its process runs, and a named folder is the only one', () => {
  leave(lab, { labUrl: 'http://127.0.0.1:2', pid: process.pid, url: 'http://127.0.0.1:8080' })
  leave(site, { pid: process.pid, url: 'http://127.0.0.1:8082' })
  const urls = (named?: string) => runningStarts(checkout.path, named).map(({ url }) => url)
  expect([urls(), urls(site)]).toEqual([['http://127.0.0.1:8080', 'http://127.0.0.1:8082'], ['http://127.0.0.1:8082']])
  leave(lab, { pid: null })
  expect(urls()).toEqual(['http://127.0.0.1:8082'])
})
