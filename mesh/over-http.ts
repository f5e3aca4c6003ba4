import { type HttpRequest, request, streamLines } from '../clients/http.ts'
import { type DeviceAsk, type DeviceWay, maxAnswerBytes } from './exchange.ts'

/** A device's address, and the authority (PEM) that has to sign its certificate. */
type DeviceAddress = { id: string; url: string; ca?: string }

/** The transport to a device that listens: one HTTP request per exchange. */
export function overHttp(address: DeviceAddress): DeviceWay {
  return {
    id: address.id,
    async ready() {},
    exchange: (ask) => request(toRequest(address, ask)),
    lines: (ask) => streamLines(toRequest(address, ask)),
  }
}

function toRequest({ url, ca }: DeviceAddress, ask: DeviceAsk): HttpRequest {
  const { method, path, body, authorization, accept, timeoutMs, signal } = ask
  return {
    method,
    url: `${url.replace(/\/+$/, '')}${path}`,
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(authorization !== undefined && { authorization }),
      ...(accept !== undefined && { accept }),
    },
    ...(body !== undefined && { body }),
    timeoutMs,
    maxBytes: maxAnswerBytes,
    // Allows private networks, where devices are, but no link-local addresses or metadata services.
    allow: 'private',
    ...(ca !== undefined && { ca }),
    ...(signal && { signal }),
  }
}
