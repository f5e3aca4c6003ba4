import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import type { Context } from './hono.ts'
import { ownOrigins } from './own-origin.ts'

/** The prefix makes browsers refuse one that another host or a plain-http page planted. */
const hardened = '__Host-nightshift'
const plain = 'nightshift'

/** Browsers take `Secure` over https, and on the loopback address also over http. */
function isSecure(c: Context, publicUrl: string | null): boolean {
  const { hostname, host } = new URL(c.req.url)
  const loopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
  return loopback || ownOrigins(c, publicUrl).some((origin) => origin === `https://${host}`)
}

export function sessionCookie(c: Context, publicUrl: string | null): string | null {
  return getCookie(c, isSecure(c, publicUrl) ? hardened : plain) ?? null
}

/** Without an end of its own: the server says when it is over, the browser when it closes. */
export function setSessionCookie(c: Context, publicUrl: string | null, id: string): void {
  const secure = isSecure(c, publicUrl)
  setCookie(c, secure ? hardened : plain, id, { path: '/', httpOnly: true, sameSite: 'Strict', secure })
}

export function dropSessionCookie(c: Context, publicUrl: string | null): void {
  const secure = isSecure(c, publicUrl)
  deleteCookie(c, secure ? hardened : plain, { path: '/', secure })
}
