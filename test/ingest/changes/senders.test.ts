import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Change, ParsedChanges } from '../../../domain/change.ts'
import { parseGithub } from '../../../ingest/changes/github.ts'
import { parseGitlab } from '../../../ingest/changes/gitlab.ts'
import { parseGenericChanges, senderOf } from '../../../ingest/changes/senders.ts'
import { github, gitlab, signed } from '../../support/deliveries.ts'

const now = '2026-11-22T03:00:00.000Z'
const at = '2026-11-22T02:50:00Z'
const bytesOf = (body: unknown): Uint8Array => Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
const readGithub = (event: string, body: unknown) => parseGithub({ bytes: bytesOf(body), event, key: null }, now)
const readGitlab = (event: string, body: unknown, key: string | null = null) =>
  parseGitlab({ bytes: bytesOf(body), event, key }, now)
const readGeneric = (body: unknown) => parseGenericChanges({ bytes: bytesOf(body), event: null, key: null }, now)

function only(parsed: ParsedChanges): Change {
  if (!parsed.ok || parsed.changes.length !== 1) throw new Error(JSON.stringify(parsed))
  return parsed.changes[0] as Change
}
const ignored = (parsed: ParsedChanges): string | null => (parsed.ok ? parsed.ignored : `refused: ${parsed.reason}`)
const refused = (parsed: ParsedChanges): string => (parsed.ok ? 'taken' : parsed.reason)

test('a deployment of GitHub says what was deployed where, by whom, and when', () => {
  expect(only(readGithub('deployment_status', github.deployment({ at })))).toMatchObject({
    source: 'github',
    at: '2026-11-22T02:50:00.000Z',
    author: 'anna',
    environment: 'production',
    title: 'Deployment of acme/shop to production: success',
    url: 'https://github.com/acme/shop/actions/runs/7/job/9',
    revision: 'f95f852bd8fca8fcc58a9a2d6c842781e32a215e',
    labels: { repository: 'acme/shop', environment: 'production', deployment: 'acme/shop@production', ref: 'main' },
  })
  expect(ignored(readGithub('deployment_status', github.deployment({ at, state: 'inactive' })))).toContain('inactive')
})

test('a push to the default branch of GitHub is a change with the date of the push, and a push to another branch is not', () => {
  const pushedAt = Date.parse(at) / 1000
  expect(only(readGithub('push', github.push({ pushedAt })))).toMatchObject({
    at: '2026-11-22T02:50:00.000Z',
    author: 'anna',
    labels: { repository: 'acme/shop', branch: 'main' },
    title: 'Push to main of acme/shop: Raise the pool to 50 (2 commits)',
  })
  for (const other of [{ ref: 'refs/heads/topic' }, { ref: 'refs/tags/main' }, { deleted: true }])
    expect(ignored(readGithub('push', github.push({ pushedAt, ...other })))).toMatch(/not the default branch|deleted/)
})

test('a GitHub release counts when it is published, and a workflow when it ends on the default branch', () => {
  expect(only(readGithub('release', github.release({ action: 'published', at })))).toMatchObject({
    title: 'Release v2.1 of acme/shop: Winter sale',
    revision: 'v2.1',
  })
  expect(ignored(readGithub('release', github.release({ action: 'released', at })))).toContain('released')
  expect(only(readGithub('workflow_run', github.run({ at }))).title).toBe(
    'Workflow Deploy of acme/shop on main: failure: Raise the pool to 50',
  )
  for (const other of [
    { action: 'requested' },
    { branch: 'topic' },
    { event: 'pull_request' },
    { conclusion: 'skipped' },
  ])
    expect([other, ignored(readGithub('workflow_run', github.run({ at, ...other })))]).toEqual([
      other,
      expect.any(String),
    ])
})

test("a push, a deployment and a pipeline of GitLab are changes, with GitLab's form of times", () => {
  expect(only(readGitlab('Push Hook', gitlab.push()))).toMatchObject({
    source: 'gitlab',
    at: now,
    author: 'anna',
    revision: 'da1560886d4f094c3e6c9ef40349f7d38b5d27d7',
    title: 'Push to main of acme/shop: Raise the pool to 50 (4 commits)',
  })
  expect(only(readGitlab('Deployment Hook', gitlab.deployment({ at: '2026-11-22 03:50:00 +0100' })))).toMatchObject({
    at: '2026-11-22T02:50:00.000Z',
    environment: 'production',
    author: 'anna',
    title: 'Deployment of acme/shop to production: success: Raise the pool to 50',
    revision: 'da1560886d4f094c3e6c9ef40349f7d38b5d27d7',
  })
  expect(only(readGitlab('Pipeline Hook', gitlab.pipeline({ at: '2026-11-22 02:50:00 UTC' })))).toMatchObject({
    at: '2026-11-22T02:50:00.000Z',
    title: 'Pipeline of acme/shop on main: success: Raise the pool to 50',
  })
})

test('a GitLab event that deploys nothing is ignored with its reason', () => {
  const said = [
    readGitlab('Push Hook', gitlab.push({ ref: 'refs/heads/topic' })),
    readGitlab('Push Hook', gitlab.push({ after: '0'.repeat(40) })),
    readGitlab('Deployment Hook', gitlab.deployment({ at, status: 'created' })),
    readGitlab('Pipeline Hook', gitlab.pipeline({ at, status: 'running' })),
    readGitlab('Pipeline Hook', gitlab.pipeline({ at, source: 'merge_request_event' })),
    readGitlab('Pipeline Hook', gitlab.pipeline({ at, ref: 'topic' })),
    readGitlab('Issue Hook', {}),
  ].map(ignored)
  for (const each of said) expect(each).toMatch(/^(?!refused)./)
  expect(only(readGitlab('Pipeline Hook', gitlab.pipeline({ at, ref: 'v1', tag: true }))).labels.tag).toBe('v1')
})

test('a delivery is the same if its body is the same, whatever an unsigned header says', () => {
  const body = github.deployment({ at })
  const deliveries = [body, body, github.deployment({ at, id: 2 })].map(
    (each) => only(readGithub('deployment_status', each)).delivery,
  )
  expect(new Set(deliveries).size).toBe(2)
  // GitLab pushes the same commits back and forth with the same body: its key tells a repeat from a
  // second push.
  const keys = ['a', 'a', 'b'].map((key) => only(readGitlab('Push Hook', gitlab.push(), key)).delivery)
  expect(new Set(keys).size).toBe(2)
})

test('the signature of GitHub is checked as in the example of its documentation', () => {
  const sender = senderOf((name) => (name === 'x-github-event' ? 'push' : undefined))
  const given = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
  const isProven = (signature: string | undefined, body = 'Hello, World!') =>
    sender?.isProven("It's a Secret to Everybody", () => signature, Buffer.from(body))
  expect([isProven(given), isProven(given, 'Hello, World'), isProven(undefined), isProven('')]).toEqual([
    true,
    false,
    false,
    false,
  ])
  expect(signed("It's a Secret to Everybody", 'Hello, World!')).toBe(given)
  expect(senderOf(() => 'both')).toBeNull()
})

test('a wrong body of a script is refused with the correction', () => {
  const good = { title: 'nginx 1.29', at, resources: 'node:web-1' }
  const cases: [unknown, RegExp][] = [
    ['', /empty/],
    ['{', /not JSON/],
    [[good, 5], /item 1 is a number/],
    [{ at }, /"title" is missing/],
    [{ ...good, title: 7 }, /"title" is a number/],
    [{ title: 'x' }, /"at" must be/],
    [{ ...good, at: 'yesterday' }, /"at" must be/],
    [{ ...good, at: '5' }, /"at" must be/],
    [{ ...good, at: '2026-11-22T02:50:00' }, /"at" must be/],
    [{ ...good, at: '2026-02-30T00:00:00Z' }, /"at" is not a valid time \(2026-02-30T00:00:00Z\)/],
    [{ ...good, at: '2026-02-29T23:00:00-05:00' }, /"at" is not a valid time/],
    [{ ...good, at: '2026-11-22T03:10:00Z' }, /future/],
    [{ ...good, url: 'javascript:alert(1)' }, /"url"/],
    [{ ...good, resources: ['web-1', {}] }, /"resources" has an object/],
    [{ ...good, resources: Array(21).fill('a') }, /21 names/],
    [{ ...good, labels: [] }, /"labels" is an array/],
    [Array(101).fill(good), /101 changes/],
  ]
  for (const [body, reason] of cases)
    expect([body, refused(readGeneric(body))]).toEqual([body, expect.stringMatching(reason)])
  expect(only(readGeneric(good))).toMatchObject({ title: 'nginx 1.29', resources: ['node:web-1'], author: null })
  expect(only(readGeneric({ ...good, at: '2026-11-22T03:04:00Z' })).title).toBe('nginx 1.29')
})

test('long and hostile texts are cut to the limits, and links lead only to http addresses', () => {
  const change = only(
    readGeneric({
      title: 'x'.repeat(50_000),
      at,
      author: 'y'.repeat(9_000),
      labels: { a: 'z'.repeat(99_999), __proto__: 1 },
    }),
  )
  expect([change.title.length, change.author?.length]).toEqual([300, 200])
  expect(JSON.stringify(change).length).toBeLessThan(3_000)
  const evil = { ...gitlab.deployment({ at }), deployable_url: 'javascript:alert(1)' }
  expect(only(readGitlab('Deployment Hook', evil)).url).toBeNull()
})

test('no bytes of any sender make parsing throw', () => {
  const events = ['push', 'release', 'Push Hook', 'Pipeline Hook', 'constructor', '__proto__', '']
  fc.assert(
    fc.property(
      fc.oneof(fc.json(), fc.string(), fc.constant(JSON.stringify(github.push({ pushedAt: 1e300 })))),
      fc.constantFrom(...events),
      (body, event) => {
        for (const parse of [parseGithub, parseGitlab, parseGenericChanges])
          expect(typeof parse({ bytes: Buffer.from(body), event, key: null }, now).ok).toBe('boolean')
      },
    ),
    { numRuns: 300, seed: 20_261_122 },
  )
})
