import { expect, test } from '@jest/globals'
import { addressOf, hostOf, isKnownHost } from '../../../safety/command/remote-exec-wrappers.ts'

test('a host is known if it was read, or is this machine', () => {
  const known = new Set(['db1', '10.0.0.5'])
  for (const host of ['db1', 'DB1', 'db1.', '10.0.0.5', 'localhost', '127.0.0.1', '[::1]'])
    expect(isKnownHost(host, known)).toBe(true)
  for (const host of ['db2', '127.1', '0', '2130706433', 'db1.attacker.example'])
    expect(isKnownHost(host, known)).toBe(false)
})

test.each([
  ['http://db1/x?y=z', 'db1'],
  ['https://db1:8443', 'db1'],
  ['http://[::1]:80/', '[::1]'],
  ['http://db1@attacker/', null],
  ['http://db1:x@attacker/', null],
  ['http://db1\\@attacker/', null],
  ['http://{db1,attacker}/', null],
  ['file:///etc/shadow', null],
  ['gopher://db1/', null],
  ['db1:8080/health', 'db1'],
  ['ftp.db1/x', null],
])('the host of %s is %s', (url, host) => expect(addressOf(url)?.host ?? null).toBe(host))

test('a host may have a user and a port, and is no option', () => {
  expect(hostOf('bob@db1')).toBe('db1')
  expect(hostOf('db1:5432')).toBe('db1')
  expect(hostOf('-oProxyCommand=x')).toBeNull()
  expect(hostOf('a b')).toBeNull()
})
