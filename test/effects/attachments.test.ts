import { inflateSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { verifyIncident } from '../../db/verify/incident.ts'
import type { Attachment, Attachments } from '../../domain/attachment.ts'
import { sha256 } from '../../domain/digest.ts'
import type { CorePort } from '../../domain/tool.ts'
import { rewritePng, takeAttachments } from '../../effects/attachments.ts'
import { convergeShard } from '../../tools/platform.ts'
import { asked } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident } from '../support/database.ts'
import { buildChart, buildPng, pngChunk, pngSignature } from '../support/png.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

const platform = scriptedPlatform()
const api = useApi(() => ({ platform }))

const png = (bytes: Buffer, name = 'chart.png') => ({ name, kind: 'png', base64: bytes.toString('base64') })
const text = (words: string, name = 'plan.txt') => ({ name, kind: 'text', text: words })
const take = async (...sent: unknown[]) => await takeAttachments(api.db, sent)
const leftOut = async (bytes: Buffer) => (await take(png(bytes))).leftOut?.[0]

describe('a picture', () => {
  test('is stored as this process writes it, without metadata, a second picture or bytes behind the end', async () => {
    const script = '<script>alert(1)</script>'
    const chart = buildChart()
    const metadata = ['tEXt', 'iTXt', 'zTXt', 'iCCP', 'eXIf'].map((type) => pngChunk(type, Buffer.from(`x\0${script}`)))
    const at = pngSignature.length + 25
    const dressed = Buffer.concat([chart.subarray(0, at), ...metadata, chart.subarray(at), Buffer.from(script)])
    const written = await rewritePng(dressed)
    if ('why' in written) throw new Error(written.why)
    expect(written).toMatchObject({ width: 320, height: 120 })
    expect(written.bytes.toString('latin1')).not.toContain('script')
    expect(chunksOf(written.bytes).map(({ type }) => type)).toEqual(['IHDR', 'IDAT', 'IEND'])
    const [sent, kept] = [chart, written.bytes].map(
      (bytes) => chunksOf(bytes).find(({ type }) => type === 'IDAT')?.data,
    )
    expect(inflateSync(kept!).equals(inflateSync(sent!))).toBe(true)
  })

  test('keeps palette and transparency if its colours are numbers of them', async () => {
    const before = [pngChunk('PLTE', Buffer.from([255, 0, 0, 0, 0, 255])), pngChunk('tRNS', Buffer.from([0]))]
    const rows = Buffer.from([0, 0b01000000])
    const written = await rewritePng(buildPng({ width: 2, height: 1, colour: 3, depth: 1, rows, before }))
    if ('why' in written) throw new Error(written.why)
    expect(chunksOf(written.bytes).map(({ type }) => type)).toEqual(['IHDR', 'PLTE', 'tRNS', 'IDAT', 'IEND'])
  })

  test('is left out before unpacking if it is too large, with its size', async () => {
    expect(await leftOut(buildPng({ width: 9_000, height: 9_000, rows: Buffer.alloc(1) }))).toBe(
      'chart.png was left out: 9,000 x 9,000 px, at most 2,000.',
    )
    expect(await leftOut(buildPng({ width: 2 ** 32 - 1, height: 1, rows: Buffer.alloc(1) }))).toMatch(
      /4,294,967,295 x 1 px/,
    )
    expect(await leftOut(Buffer.alloc(1_200_000))).toBe('chart.png was left out: 1.2 MB, at most 256 kB.')
  })

  test('is left out if it unpacks to more than its header says, and takes no more memory than the header says', async () => {
    const bomb = buildPng({ width: 10, height: 10, rows: Buffer.alloc(200_000_000) })
    expect(bomb.length).toBeLessThan(256_000)
    const before = process.memoryUsage().arrayBuffers
    expect(await leftOut(bomb)).toBe('chart.png was left out: the data is larger than its header states.')
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000)
  })

  const chart = buildChart()
  const flipped = Buffer.from(chart)
  flipped.writeUInt8(flipped.readUInt8(60) ^ 1, 60)
  test.each([
    ['no PNG', Buffer.from('<svg onload="alert(1)"/>'), 'the file is not a PNG'],
    ['a signature alone', pngSignature, 'the file is not a complete PNG'],
    ['broken off', chart.subarray(0, chart.length - 20), 'the file is not a complete PNG'],
    ['of a wrong checksum', flipped, 'a checksum in the file is wrong'],
    ['interlaced', buildPng({ width: 8, height: 8, interlace: 1 }), 'the picture is interlaced'],
    [
      'animated',
      buildPng({ width: 8, height: 8, before: [pngChunk('acTL', Buffer.alloc(8))] }),
      'the picture is animated',
    ],
    ['of too few rows', buildPng({ width: 8, height: 8, rows: Buffer.alloc(9) }), 'the file is not a complete PNG'],
    [
      'of a filter that there is not',
      buildPng({ width: 1, height: 1, rows: Buffer.from([9, 0]) }),
      'the file is not a complete PNG',
    ],
    [
      'of a colour type that there is not',
      buildPng({ width: 1, height: 1, colour: 5 }),
      'the file is not a complete PNG',
    ],
    ['of no width', buildPng({ width: 0, height: 8 }), 'the file is not a complete PNG'],
    ['without its palette', buildPng({ width: 8, height: 8, colour: 3 }), 'the file is not a complete PNG'],
    [
      'with a critical part of its own',
      buildPng({ width: 8, height: 8, before: [pngChunk('EVIL')] }),
      'the file has a part that the PNG standard does not define',
    ],
  ])('that is %s is left out, and the card says why', async (_, bytes, why) => {
    expect(await leftOut(bytes)).toBe(`chart.png was left out: ${why}.`)
  })
})

describe('a text', () => {
  test('is shown literally: no escape sequence, no bidi mark, no secret, and its first lines are with the approval', async () => {
    const sent = `one\n\u001b[31mtwo\u001b[0m\nthr\u202eee\npassword=hunter2hunter2\n${'more\n'.repeat(10)}`
    const { attachments } = await take(text(sent, 'a\u202eb\n\u001b]0;x\u0007 <b>.txt'))
    expect(attachments).toMatchObject([{ name: 'ab <b>.txt', kind: 'text', lines: 14 }])
    const stored = await bodyOf(attachments?.[0])
    expect(stored).toMatch(/^one\ntwo\nthree\n/)
    for (const hidden of ['hunter2', '\u001b', '\u202e']) expect(stored).not.toContain(hidden)
    expect(attachments?.[0]?.head?.split('\n')).toHaveLength(6)
  })

  test('of 10 MB is cut at a line, and text and card say so', async () => {
    const { attachments, leftOut } = await take(text('a line of a log\n'.repeat(650_000)))
    expect(leftOut).toEqual(['plan.txt was cut: the first 256 kB of 10.4 MB were kept.'])
    expect(attachments?.[0]?.bytes).toBeLessThan(256_100)
    expect(await bodyOf(attachments?.[0])).toMatch(/a line of a log\n\[cut here: 10\.4 MB were sent\]$/)
  })

  test('of one endless line is cut, too', async () => {
    const { attachments } = await take(text('x'.repeat(1_000_000)))
    expect(attachments?.[0]?.bytes).toBeLessThan(256_000)
  })
})

test('at most four attachments are taken, and an invalid one spoils nothing', async () => {
  const few = await take({ kind: 'svg' }, 7, null, text('kept'), text('more'), text('more'))
  expect(few.attachments?.map(({ name }) => name)).toEqual(['plan.txt'])
  expect(few.leftOut).toEqual([
    'attachment 1 was left out: the attachment is neither a text nor a PNG.',
    'attachment 2 was left out: the attachment is neither a text nor a PNG.',
    'attachment 3 was left out: the attachment is neither a text nor a PNG.',
    '2 more attachments were left out: at most 4 are accepted.',
  ])
  expect(await takeAttachments(api.db, 'all of it')).toEqual({
    leftOut: ['Attachments were left out: they are not a list.'],
  })
  expect(await takeAttachments(api.db, undefined)).toEqual({})
})

describe('over the API', () => {
  let brought: Attachments
  let incidentId: string
  let approvalId: string
  const request = (path: string, headers: Record<string, string> = {}, token: string | null = api.tokens.viewer) =>
    api.api.app.request(`/api/v1${path}`, {
      headers: { ...(token && { authorization: `Bearer ${token}` }), ...headers },
    })
  const pathOf = (index: number, id = approvalId) =>
    `/approvals/${id}/attachments/${brought.attachments?.[index]?.digest}`

  beforeAll(async () => {
    brought = await take(
      png(buildChart(), 'replicas of "osl" \u2192 now.png'),
      text('<script>alert(1)</script>\n', 'diff'),
    )
    incidentId = await claimedIncident(api.db)
    const dryRun = { possible: true, summary: 'Converge db-osl-1', details: {}, ...brought }
    approvalId = await asked(api.db, incidentId, { tool: 'converge_shard', dryRun })
  })

  test('an approval names the attachments of its dry run, and its row in the log has their digests', async () => {
    const { body } = await api.get(`/approvals/${approvalId}`)
    expect(body.dryRun).toMatchObject(brought)
    const flaws = async () =>
      (await verifyIncident(api.owner, incidentId)).differences.filter(({ subject }) => subject === approvalId)
    expect(await flaws()).toEqual([])
    const changed = { possible: true, summary: 'Converge db-osl-1', details: {}, attachments: [] }
    const set = (dryRun: object) =>
      api.owner
        .updateTable('approval')
        .set({ dryRun: JSON.stringify(dryRun) })
        .where('id', '=', approvalId)
        .execute()
    await set(changed)
    expect(await flaws()).toMatchObject([
      { subject: approvalId, what: expect.stringMatching(/^attachments is "", the rows say/) },
      { subject: approvalId, what: expect.stringContaining('differs from what was shown') },
    ])
    await set({ ...changed, ...brought })
  })

  test('a picture is returned as the bytes of its digest, with a type that cannot run', async () => {
    const response = await request(pathOf(0))
    const bytes = Buffer.from(await response.arrayBuffer())
    expect(response.status).toBe(200)
    expect(sha256(bytes)).toBe(brought.attachments?.[0]?.digest)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'image/png',
      'x-content-type-options': 'nosniff',
      'content-disposition': 'inline; filename="replicas-of-osl-now.png"',
      'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
      'cache-control': 'private, no-cache',
      etag: `"${sha256(bytes)}"`,
    })
    const again = await request(pathOf(0), { 'if-none-match': `"${sha256(bytes)}"` })
    expect([again.status, await again.text()]).toEqual([304, ''])
  })

  test('a text is plain text, whatever it contains', async () => {
    const response = await request(pathOf(1))
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(response.headers.get('content-disposition')).toBe('inline; filename="diff.txt"')
    expect(await response.text()).toBe('<script>alert(1)</script>\n')
  })

  test('a digest that this approval does not name is not found, even if another approval names it', async () => {
    const other = await asked(api.db, await claimedIncident(api.db))
    expect((await request(pathOf(0, other))).status).toBe(404)
    expect((await request(`/approvals/${approvalId}/attachments/${'0'.repeat(64)}`)).status).toBe(404)
    expect((await request(pathOf(0, 'apr_none'))).status).toBe(404)
    expect((await request(`/approvals/${approvalId}/attachments/..%2f..%2fx`)).status).toBe(422)
    // A body of the log that no dry run brought along.
    const { attachments } = await take(text('a result of a tool'))
    expect((await request(`/approvals/${approvalId}/attachments/${attachments?.[0]?.digest}`)).status).toBe(404)
  })

  test('a person without access to the approval reads no attachment of it', async () => {
    expect((await request(pathOf(0), {}, null)).status).toBe(401)
    expect((await request(pathOf(0), {}, api.tokens.ingest)).status).toBe(403)
  })

  test("attachments of a platform's dry run are on the card, and change neither action nor fingerprint", async () => {
    const { wouldConverge } = platform
    const prepare = async () => {
      const get: CorePort['get'] = async (path) => {
        const { status, body } = await api.get(path.replace('/api/v1', ''), { as: api.tokens.agent })
        return { ok: true, status, data: body }
      }
      const context = { core: { get } as CorePort, incidentId, stepKey: 'k', ifMatch: null }
      return await convergeShard.prepare!({ id: 'db-osl-1', reason: 'it has drifted' }, context)
    }
    const bare = await prepare()
    const attachments = [png(buildChart()), text('-a\n+b\n'), png(Buffer.from('GIF89a'), 'logo.gif')]
    platform.wouldConverge = async (id) => ({ ...(await wouldConverge(id))!, attachments })
    const dressed = await prepare()
    platform.wouldConverge = async (id) => ({ ...(await wouldConverge(id))!, attachments: { not: 'a list' } })
    const spoiled = await prepare()
    platform.wouldConverge = wouldConverge
    expect(bare.dryRun).not.toHaveProperty('attachments')
    expect(dressed.dryRun.attachments).toMatchObject([
      { name: 'chart.png', width: 320 },
      { name: 'plan.txt', head: '-a\n+b' },
    ])
    expect(dressed.dryRun.leftOut).toEqual(['logo.gif was left out: the file is not a PNG.'])
    expect(spoiled.dryRun.leftOut).toEqual(['Attachments were left out: they are not a list.'])
    for (const each of [dressed, spoiled]) {
      const { dryRun: _, ...rest } = each
      expect(rest).toEqual({ targets: bare.targets, identity: bare.identity, stateFingerprint: bare.stateFingerprint })
    }
  })
})

async function bodyOf(attachment: Attachment | undefined): Promise<string> {
  const row = await api.db
    .selectFrom('resultBody')
    .select('bytes')
    .where('digest', '=', attachment?.digest ?? '')
    .executeTakeFirstOrThrow()
  return row.bytes.toString('utf8')
}

function chunksOf(png: Buffer): { type: string; data: Buffer }[] {
  const found: { type: string; data: Buffer }[] = []
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at)
    found.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) })
    at += 12 + length
  }
  return found
}
