import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { type Context, getOwnOrigins } from '../deps.ts'

/**
 * The name of the session cookie. With the prefix `__Host-`, browsers refuse a cookie from another
 * host or a plain-http page.
 */
const hardened = '__Host-nightshift'

const plain = 'nightshift'

/** Whether to set `Secure`, which browsers accept over https and on the loopback address. */
function isSecure(c: Context, publicUrl: string | null): boolean {
  const { hostname, host } = new URL(c.req.url)
  const loopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
  return loopback || getOwnOrigins(c, publicUrl).some((origin) => origin === `https://${host}`)
}

export function sessionCookie(c: Context, publicUrl: string | null): string | null {
  return getCookie(c, isSecure(c, publicUrl) ? hardened : plain) ?? null
}

/** Sets a cookie without an expiry. The session ends at the server, or when the browser closes. */
export function setSessionCookie(c: Context, publicUrl: string | null, id: string): void {
  const secure = isSecure(c, publicUrl)
  setCookie(c, secure ? hardened : plain, id, { path: '/', httpOnly: true, sameSite: 'Strict', secure })
}

export function dropSessionCookie(c: Context, publicUrl: string | null): void {
  const secure = isSecure(c, publicUrl)
  deleteCookie(c, secure ? hardened : plain, { path: '/', secure })
}
