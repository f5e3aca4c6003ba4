import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sourceByName } from '../../db/inventory/sources.ts'
import type { Source } from '../../domain/source.ts'
import { connectHttp } from '../../sources/connect-http.ts'
import { useApi } from '../support/api.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Answer, json, useSourceServer, vector } from '../support/source-server.ts'

/**
 * Tenants and logins: servers that answer as Loki, Mimir, VictoriaLogs and a cluster of
 * VictoriaMetrics do.
 */

const directory = temporaryDirectory().path
const api = useApi(() => ({ sourcesDirectory: directory }))
const { stage, read } = useSourceServer(api)

type Said = { ok: boolean; code: string | null; detail: string }
const put = async (name: string, more: Record<string, unknown>) =>
  await api.put(`/sources/${name}`, { body: { kind: 'prometheus', url: stage.url, ...more } })
const tested = async (name: string, more: Record<string, unknown>) => {
  const made = await put(name, more)
  expect([made.status, made.body.detail]).toEqual([200, undefined])
  return (await api.post(`/sources/${name}/test`)).body as unknown as Said
}
const file = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text)
  return `file:${join(directory, name)}`
}

const tenantOf = (request: IncomingMessage) => request.headers['x-scope-orgid']

/**
 * Loki and Mimir with tenants: each has its own data, and without the header 401 with these words.
 */
const withTenants =
  (whole: (tenant: string) => Answer): Answer =>
  (request, response, body) => {
    const tenant = tenantOf(request)
    if (tenant === undefined) return void response.writeHead(401, { 'content-type': 'text/plain' }).end('no org id\n')
    return whole(String(tenant))(request, response, body)
  }
const loki = withTenants((tenant) =>
  json({ status: 'success', data: tenant === 'tenant-a' ? ['host', 'job', 'unit'] : [] }),
)
const mimir = withTenants((tenant) => vector([{ metric: {}, value: [1, tenant === 'tenant-a' ? '12' : '3'] }]))

test('a Loki or a Mimir with tenants reports that it needs one, and answers for the set tenant', async () => {
  for (const [kind, answer, told] of [
    ['loki', loki, ['3 labels', '0 labels']],
    ['prometheus', mimir, ['12 targets', '3 targets']],
  ] as const) {
    stage.answer = answer
    const without = await tested('shared', { kind })
    const remedy = `shared requires a tenant (401: no org id): nightshift sources add shared --kind ${kind} --at ${stage.url} --header X-Scope-OrgID=TENANT`
    expect(without).toEqual({ ok: false, code: 'NO_TENANT', detail: remedy })
    for (const [at, tenant] of ['tenant-a', 'tenant-b'].entries()) {
      const as = await tested('shared', { kind, headers: { 'X-Scope-OrgID': tenant } })
      expect(as).toMatchObject({ ok: true, detail: expect.stringContaining(String(told[at])) })
    }
  }
})

test('a refusal without a tenant is not reported as a refusal of the set credential', async () => {
  stage.answer = mimir
  const credential = file('mimir-token', 'sesame-open-the-door')
  expect((await tested('shared', { credential })).detail).toMatch(/requires a tenant.* --credential file:.* --header/)
})

test('without a credential the remedy is to set one, not to renew it', async () => {
  for (const status of [401, 403]) {
    stage.answer = (_, response) => void response.writeHead(status).end('go away')
    const detail = `shut answered ${status}, and no credential is set: nightshift sources add shut --kind prometheus --at ${stage.url} --header X-Scope-OrgID=tenant-a --credential REF`
    expect(await tested('shut', { headers: { 'X-Scope-OrgID': 'tenant-a' } })).toEqual({
      ok: false,
      code: 'UNAUTHORIZED',
      detail,
    })
  }
  const credential = file('token-of-shut', 'sesame-open-the-door')
  const set = await tested('shut', { credential, headers: { 'X-Scope-OrgID': 'tenant-a' } })
  expect(set.detail).toMatch(/renew the credential, or may not read the tenant X-Scope-OrgID=tenant-a/)
})

test.each([
  [
    'a tenant that VictoriaLogs cannot read',
    { kind: 'victorialogs', headers: { AccountID: 'tenant-a' } },
    'remoteAddr: "10.0.0.7:4242"; requestURI: /select/logsql/query; cannot obtain tenanID: cannot parse "tenant-a" as uint32: strconv.ParseUint: parsing "tenant-a": invalid syntax\n',
    'NO_TENANT',
    /refused the tenant AccountID=tenant-a \(400: .*cannot obtain.*\): .* --header AccountID=TENANT/,
  ],
  [
    'several tenants where Mimir is not told to join them',
    { headers: { 'X-Scope-OrgID': 'tenant-a|tenant-b' } },
    'multiple org IDs present',
    'NO_TENANT',
    /refused the tenant X-Scope-OrgID=tenant-a\|tenant-b/,
  ],
  [
    'an address without the tenant of a cluster of VictoriaMetrics',
    {},
    'remoteAddr: "10.0.0.7:4242"; requestURI: /api/v1/query; unsupported path requested: "/api/v1/query"',
    'BAD_ANSWER',
    /is the source's address right\? a VictoriaMetrics cluster has the tenant in its address, such as http.*\/select\/0\/prometheus/,
  ],
] as const)('a report of %s by the server is shown as such', async (_, more, words, code, told) => {
  stage.answer = (__, response) => void response.writeHead(400, { 'content-type': 'text/plain' }).end(words)
  const said = await tested('shared', more)
  expect(said).toMatchObject({ code, detail: expect.stringMatching(told) })
})

test("a refused query stays a refused query if the server's words are about something else", async () => {
  stage.answer = (_, response) => void response.writeHead(400).end('parse error: unknown label tenant')
  expect((await tested('shared', {})).code).toBe('REJECTED')
})

test.each([
  [{ scheme: 'ApiKey' }, 'id-of-key:the-api-key', `ApiKey ${Buffer.from('id-of-key:the-api-key').toString('base64')}`],
  [{ scheme: 'ApiKey' }, 'aWQtb2Yta2V5OnRoZS1rZXk=', 'ApiKey aWQtb2Yta2V5OnRoZS1rZXk='],
  [{ scheme: 'Token' }, 'influx-token-1234', 'Token influx-token-1234'],
  [{ scheme: 'Bearer' }, 'token:with-a-colon', 'Bearer token:with-a-colon'],
  [{ scheme: 'Basic' }, 'reader:password', `Basic ${Buffer.from('reader:password').toString('base64')}`],
  [{}, 'reader:password', `Basic ${Buffer.from('reader:password').toString('base64')}`],
  [{}, 'plain-token', 'Bearer plain-token'],
])('a credential is sent in the form of its server: %j of %s', async (more, secret, sent) => {
  stage.asked = []
  stage.answer = vector([])
  await tested('schemes', { ...more, credential: file('of-a-scheme', secret) })
  expect(stage.asked.at(-1)?.authorization).toBe(sent)
})

test('a tenant by reference is read from its file, is shown nowhere, and belongs to its server', async () => {
  const headers = { 'X-Scope-OrgID': file('tenant', 'tenant-of-the-bank') }
  stage.answer = (request, response, body) =>
    vector([{ metric: { tenant: String(tenantOf(request)) }, value: [1, '7'] }])(request, response, body)
  expect((await tested('secret', { headers })).ok).toBe(true)
  const told = await read({ source: 'secret', promql: 'up', window: 'now' })
  expect(told.body).toMatchObject({ summary: { values: [{ value: 7 }] } })
  const { body: listed } = await api.get('/sources')
  for (const body of [told.body, listed]) expect(JSON.stringify(body)).not.toContain('tenant-of-the-bank')
  expect(JSON.stringify(listed)).toContain(headers['X-Scope-OrgID'])

  const elsewhere = { url: 'http://127.0.0.1:1', headers }
  const refused = await put('secret', elsewhere)
  expect(refused.body).toMatchObject({ code: 'CREDENTIAL_ASKED', detail: expect.stringContaining('/tenant was set') })
  const credential = file('own-token', 'sesame-open-the-door')
  await tested('secret', { headers, credential })
  const both = { ...elsewhere, credential }
  const digests = ['tenant-of-the-bank', 'sesame-open-the-door'].map((text) =>
    createHash('sha256').update(text).digest('hex'),
  )
  expect((await put('secret', { ...both, credentialSha256: digests[0] })).body.code).toBe('CREDENTIAL_ASKED')
  expect((await put('secret', { ...both, credentialSha256: digests.join(',') })).status).toBe(200)
})

test("the settings of a source's requests are in the audit log", async () => {
  await put('kept', { headers: { 'X-Scope-OrgID': 'tenant-a' }, scheme: 'Token' })
  const { items } = (await api.get('/audit?what=source.put')).body as unknown as { items: { detail: string }[] }
  expect(items[0]?.detail).toBe(`prometheus at ${stage.url}, scheme Token, X-Scope-OrgID=tenant-a`)
})

test.each([
  [{ headers: { Authorization: 'Bearer x' } }, /"Authorization" is not known here: known are X-Scope-OrgID, AccountID/],
  [{ headers: { 'X-Scope-OrgID': 'a\r\nx: y' } }, /without spaces/],
  [{ headers: { 'X-Scope-OrgID': 'env:DATABASE_URL' } }, /NIGHTSHIFT_SOURCE_/],
  [{ headers: { 'X-Scope-OrgID': 'file:/etc/passwd' } }, /is not below/],
  [{ scheme: 'Digest' }, /give Bearer, Basic, ApiKey or Token/],
  [{ certFile: '/x.pem' }, /Give both certFile and keyFile/],
])('an invalid value is refused with its error: %j', async (more, reason) => {
  const refused = await put('wrong', more)
  expect([refused.status, JSON.stringify(refused.body).replaceAll('\\"', '"')]).toEqual([
    422,
    expect.stringMatching(reason),
  ])
})

/** An authority and what it signed, as a site would make them. */
function makeCertificates(): void {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' })
  const request = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(...request, '-x509', '-days', '2', '-subj', '/CN=authority', '-keyout', 'ca.key', '-out', 'ca.pem')
  const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-days', '2']
  writeFileSync(join(directory, 'names'), 'subjectAltName=IP:127.0.0.1')
  // A key belongs to the server that it was given for: each has its own.
  for (const name of ['server', 'client-TLSv1.2', 'client-TLSv1.3']) {
    openssl(...request, '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.csr`)
    openssl('x509', '-req', '-in', `${name}.csr`, ...signing, '-extfile', 'names', '-out', `${name}.pem`)
  }
  for (const name of ['stranger-TLSv1.2', 'stranger-TLSv1.3'])
    openssl(...request, '-x509', '-days', '2', '-subj', '/CN=x', '-keyout', `${name}.key`, '-out', `${name}.pem`)
}

const servers: ReturnType<typeof createServer>[] = []
/** A server that asks its clients for a certificate. */
async function startShut(maxVersion: 'TLSv1.2' | 'TLSv1.3'): Promise<string> {
  const pem = (name: string) => readFileSync(join(directory, name))
  const believed = { ca: pem('ca.pem'), requestCert: true, rejectUnauthorized: true, maxVersion }
  const own = { cert: pem('server.pem'), key: pem('server.key') }
  const server = createServer({ ...own, ...believed }, (request, response) => {
    const { CN } = (request.socket as TLSSocket).getPeerCertificate().subject
    vector([{ metric: {}, value: [1, CN === `client-${maxVersion}` ? '5' : '0'] }])(request, response, '')
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}
beforeAll(makeCertificates)
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
})
const ownFiles = (name: string, key = name) => ({
  certFile: join(directory, `${name}.pem`),
  keyFile: join(directory, `${key}.key`),
})

test.each([
  ['TLSv1.2', 'UNAUTHORIZED', /it may require a client certificate.* --ca .* --cert FILE --key FILE$/],
  [
    'TLSv1.3',
    'BAD_ANSWER',
    /not complete; a server that requires a client certificate \(--cert, --key\) also sends such responses$/,
  ],
] as const)('a server that asks for a certificate gets the set one: %s', async (version, code, without) => {
  const at = { url: await startShut(version), caFile: join(directory, 'ca.pem') }
  expect(await tested('mutual', at)).toEqual({ ok: false, code, detail: expect.stringMatching(without) })
  const strange = await tested('mutual', { ...at, ...ownFiles(`stranger-${version}`) })
  expect(strange).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/(refused|not accept) .*stranger-TLSv1...pem/),
  })
  const shown = await tested('mutual', { ...at, ...ownFiles(`client-${version}`) })
  expect(shown).toEqual({ ok: true, code: null, detail: 'the source answers queries; 5 targets' })
})

test('a certificate without its own key is refused at once, and the refusal of an nginx that asks for one is understood', async () => {
  const mixed = await put('mutual', ownFiles('client-TLSv1.2', 'client-TLSv1.3'))
  expect([mixed.status, mixed.body.detail]).toEqual([
    422,
    expect.stringMatching(/is not the key of .*client-TLSv1.2.pem/),
  ])
  stage.answer = (_, response) =>
    void response
      .writeHead(400, { 'content-type': 'text/html' })
      .end('<h1>400</h1>No required SSL certificate was sent')
  const asked = await tested('mutual', {})
  expect(asked).toMatchObject({ code: 'UNAUTHORIZED', detail: expect.stringMatching(/--cert FILE --key FILE$/) })
})

test('a server that accepts JSON is asked with JSON', async () => {
  stage.answer = (request, response, body) =>
    json({ type: request.headers['content-type'], sent: JSON.parse(body) })(request, response, body)
  await put('search', {})
  const source = await sourceByName(api.db, 'search')
  const ask = connectHttp(source as Source, directory)
  const query = { query: { match: { host: 'web-1' } }, size: 10 }
  const answered = await ask({ method: 'POST', path: '/logs-*/_search', json: query })
  expect(answered).toEqual({ type: 'application/json', sent: query })
})
