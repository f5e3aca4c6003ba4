import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { allows, kindOfAddress } from '../../clients/address.ts'

test.each([
  ['127.0.0.1', 'loopback'],
  ['127.8.9.10', 'loopback'],
  ['::1', 'loopback'],
  ['[::1]', 'loopback'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['10.0.0.1', 'private'],
  ['192.168.1.1', 'private'],
  ['172.31.255.255', 'private'],
  ['100.64.0.1', 'private'],
  ['fd12::1', 'private'],
  ['::ffff:10.0.0.1', 'private'],
  ['93.184.216.34', 'public'],
  ['2606:4700::1111', 'public'],
  ['64:ff9b::5db8:d822', 'public'],
  ['0.0.0.0', 'denied'], // reaches loopback services on Linux
  ['0.1.2.3', 'denied'],
  ['::', 'denied'],
  ['169.254.169.254', 'denied'],
  ['169.254.0.1', 'denied'],
  ['fe80::1', 'denied'],
  ['fe80::1%eth0', 'denied'],
  ['fd00:ec2::254', 'denied'],
  ['fd20:ce::254', 'denied'],
  ['100.100.100.200', 'denied'],
  ['168.63.129.16', 'denied'],
  ['192.0.0.192', 'denied'],
  ['224.0.0.1', 'denied'],
  ['255.255.255.255', 'denied'],
  ['ff02::1', 'denied'],
  ['::ffff:169.254.169.254', 'denied'],
  ['::ffff:a9fe:a9fe', 'denied'],
  ['0:0:0:0:0:ffff:a9fe:a9fe', 'denied'],
  ['::ffff:0.0.0.0', 'denied'],
  ['::169.254.169.254', 'denied'],
  ['::127.0.0.1', 'denied'],
  ['::ffff:0:169.254.169.254', 'denied'],
  ['64:ff9b::a9fe:a9fe', 'denied'],
  ['64:ff9b::7f00:1', 'denied'],
  ['64:ff9b:1::a9fe:a9fe', 'denied'],
  ['2002:a9fe:a9fe::1', 'denied'],
  ['2002:7f00:1::', 'denied'],
  ['2001:0:53aa::1', 'denied'],
  ['2606:4700::5efe:a9fe:a9fe', 'denied'],
  ['metadata.google.internal', 'denied'], // a name is no address
  ['', 'denied'],
])('%s is %s', (address, kind) => expect(kindOfAddress(address)).toBe(kind))

test('only "any" reaches link-local addresses, and "loopback" reaches nothing else', () => {
  expect(allows('private', '169.254.169.254')).toBe(false)
  expect(allows('any', '169.254.169.254')).toBe(true)
  expect(allows('loopback', '10.0.0.1')).toBe(false)
  expect(allows('loopback', '::ffff:127.0.0.1')).toBe(true)
  expect(allows('private', '10.0.0.1')).toBe(true)
  expect(allows('any', 'example.com')).toBe(false)
})

test('no address makes the guard throw, and a mapped address is judged like the one inside', () => {
  fc.assert(fc.property(fc.ipV6(), (address) => typeof kindOfAddress(address) === 'string'))
  fc.assert(fc.property(fc.ipV4(), (address) => kindOfAddress(`::ffff:${address}`) === kindOfAddress(address)))
})
