import { execFileSync } from 'node:child_process'
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { newSourceStates } from '../../../sources/ask.ts'
import { probeSource } from '../../../sources/kinds.ts'
import { unprivilegedAccount } from '../../../start/account.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { whyNot } from '../kinds.ts'
import { giveRights, type SiteServer, startSiteServer } from './site-server.ts'

/** How a source meets a server by its login and its certificates. */

const lacking = whyNot('databases')
const place = temporaryDirectory()
const states = newSourceStates(() => undefined, place.path)
const file = (name: string) => join(place.path, name)
let server: SiteServer
let credential: string

/** An authority, and certificates of it: the server's right one, and a client's. */
function makeCertificates(): void {
  const openssl = (words: string) => execFileSync('openssl', words.split(' '), { cwd: place.path, stdio: 'ignore' })
  const key = (name: string) => `-newkey rsa:2048 -nodes -keyout ${name}.key`
  openssl(`req -x509 ${key('ca')} -out ca.pem -days 9 -subj /CN=authority`)
  openssl(`req -x509 ${key('other')} -out other.pem -days 9 -subj /CN=other`)
  writeFileSync(file('names'), 'subjectAltName=DNS:localhost\n')
  for (const [name, subject, days] of [
    ['server', '/CN=localhost', '9'],
    ['client', '/CN=nightshift_read', '9'],
  ]) {
    openssl(`req ${key(name!)} -out ${name}.csr -subj ${subject}`)
    openssl(
      `x509 -req -in ${name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out ${name}.pem -days ${days} -extfile names`,
    )
  }
  const account = process.getuid?.() === 0 ? unprivilegedAccount() : undefined
  execFileSync('chmod', ['600', file('server.key')])
  if (account) chownSync(file('server.key'), account.uid, account.gid)
}

const source = (more: object = {}, host = 'localhost') =>
  ({
    name: 'pg-1',
    kind: 'postgresql',
    url: `postgresql://${host}:${server.port}/postgres`,
    credential,
    writeCredential: null,
    scheme: null,
    headers: {},
    caFile: file('ca.pem'),
    certFile: null,
    keyFile: null,
    options: { tls: 'verified' },
    timeoutSeconds: 60,
    createdBy: 'anna',
    createdAt: '',
    ...more,
  }) as Parameters<typeof probeSource>[0]
const probe = (each = source()) => probeSource(each, states).catch((error: Error) => error.message)

const when = lacking ? describe.skip : describe

when(`a real PostgreSQL with TLS${lacking ? ` (${lacking})` : ''}`, () => {
  beforeAll(async () => {
    makeCertificates()
    const hba = [
      'host all site 127.0.0.1/32 trust',
      'hostssl all asks_client 127.0.0.1/32 scram-sha-256 clientcert=verify-ca',
      'host all all 127.0.0.1/32 scram-sha-256',
    ]
    const tls = [
      'ssl=on',
      `ssl_cert_file=${file('server.pem')}`,
      `ssl_key_file=${file('server.key')}`,
      `ssl_ca_file=${file('ca.pem')}`,
    ]
    server = await startSiteServer(place.path, { hba, settings: tls })
    credential = (await giveRights(server, place.path)).read
  })
  afterAll(async () => {
    await server?.stop()
    place.remove()
  })

  const login = async (role: string, ...rights: string[]): Promise<string> => {
    await server.run(`create role ${role} login password 'long-enough'`)
    for (const each of ['grant pg_read_all_stats to', ...rights]) await server.run(`${each} ${role}`)
    writeFileSync(file(role), `${role}:long-enough\n`, { mode: 0o600 })
    return `file:${file(role)}`
  }

  test('is verified by its own authority and name, and the login of the page may do nothing else', async () => {
    expect(await probe()).toMatch(/^the server answers: PostgreSQL [\d.]+, a primary, database postgres$/)
  })

  test('is not trusted by another authority, by that of the system, or under another name', async () => {
    const untrusted = /^pg-1 has a certificate that is not trusted: nightshift sources add pg-1 .* --ca FILE$/
    expect(await probe(source({ caFile: file('other.pem') }))).toMatch(untrusted)
    expect(await probe(source({ caFile: null }))).toMatch(untrusted)
    expect(await probe(source({}, '127.0.0.1'))).toBe(
      'pg-1 has a certificate for DNS:localhost, but not for the name in its address: use a name of the certificate in the address',
    )
  })

  test('that asks for a client certificate gets one', async () => {
    const asked = await login('asks_client')
    expect(await probe(source({ credential: asked }))).toMatch(/^pg-1 refused the login: .*certificate/)
    const own = { certFile: file('client.pem'), keyFile: file('client.key') }
    expect(await probe(source({ credential: asked, ...own }))).toMatch(/^the server answers/)
  })

  test('accepts a login that may do more than read, and says what', async () => {
    const more = (rights: string) => login(`more_${rights.replace(/\W/g, '').slice(0, 12)}`, rights)
    await server.run('create table orders (id int)')
    expect(await probe(source({ credential: await more('grant insert on orders to') }))).toMatch(
      /^the server answers: .*this login may write \(the login may write to public\.orders\): use the grants of "nightshift sources rights postgresql"/,
    )
    expect(await probe(source({ credential: await more('grant pg_write_all_data to') }))).toContain(
      'the login is a member of pg_write_all_data',
    )
    expect(await probe(source({ credential: await more('grant pg_signal_backend to') }))).toContain(
      'the login is a member of pg_signal_backend',
    )
  })
})
