import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from '@jest/globals'
import { readAddress, whyTls } from '../../../mesh/agent/manifest.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { keys, startAgent } from '../../support/running-agent.ts'

test('with a certificate the agent uses TLS', async () => {
  const place = temporaryDirectory()
  const [cert, key] = [join(place.path, 'cert.pem'), join(place.path, 'key.pem')]
  const about = ['-subj', '/CN=web-1', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '1']
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert, ...about], { stdio: 'ignore' })
  const agent = await startAgent(keys(), { args: ['--tls-cert', cert, '--tls-key', key] })
  try {
    expect(agent.url).toMatch(/^https:/)
    const health = await new Promise<string>((resolve, reject) => {
      const asked = request(`${agent.url}/health`, { ca: readFileSync(cert) }, (response) =>
        text(response).then(resolve, reject),
      )
      asked.on('error', reject)
      asked.end()
    })
    expect(JSON.parse(health)).toMatchObject({ status: 'ready', device: 'web-1' })
    await expect(fetch(agent.url.replace('https', 'http'))).rejects.toThrow()
  } finally {
    await agent.stop()
    place.remove()
  }
})

test.each([
  ['127.0.0.1:7474', true],
  ['[::1]:7474', true],
  ['127.8.0.1:1', true],
  ['0.0.0.0:7474', false],
  ['[::]:7474', false],
  ['192.0.2.1:7474', false],
])('without TLS the agent may listen on %s: %s', (address, may) => {
  const read = readAddress(address)
  expect(read).not.toBeNull()
  expect(read && whyTls(read, () => false) === null).toBe(may)
})

test('inside a WireGuard tunnel the agent may listen too', () => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one && !one.internal && one.family === 'IPv4')
  const host = outside?.address ?? '192.0.2.1'
  expect(whyTls({ host, port: 7474 }, () => false)).toContain('--tls-cert')
  expect(whyTls({ host, port: 7474 }, () => true) === null).toBe(outside !== undefined)
})

test.each(['localhost:7474', '127.0.0.1', '127.0.0.1:99999', ':7474', '1.2.3:7'])(
  '%s is no address to listen on',
  (address) => {
    expect(readAddress(address)).toBeNull()
  },
)
