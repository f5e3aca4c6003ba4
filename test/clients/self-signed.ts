import { generateKeyPairSync, sign } from 'node:crypto'

/** A certificate for 127.0.0.1 that is its own authority, and its key, both PEM: made again each time, so that none is kept. */
export function selfSigned(): { cert: string; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(tagged(0x06, Buffer.from('2a8648ce3d040302', 'hex')))
  const name = sequence(
    tagged(0x31, sequence(tagged(0x06, Buffer.from('550403', 'hex')), tagged(0x0c, Buffer.from('pve1')))),
  )
  const time = (text: string) => tagged(0x17, Buffer.from(text))
  const address = tagged(0x87, Buffer.from([127, 0, 0, 1]))
  const extension = (id: string, value: Buffer) => sequence(tagged(0x06, Buffer.from(id, 'hex')), tagged(0x04, value))
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    sequence(time('200101000000Z'), time('491231000000Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(
      0xa3,
      sequence(
        extension('551d11', sequence(address)),
        extension('551d13', sequence(tagged(0x01, Buffer.from([0xff])))),
      ),
    ),
  )
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)])
  const der = sequence(body, ecdsaWithSha256, tagged(0x03, signature)).toString('base64')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${der.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts))
}

/** DER: a tag, a length, the value. */
function tagged(tag: number, value: Buffer): Buffer {
  const { length } = value
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), value])
}
