/**
 * Shows the server's notification in this browser when an approval waits, and opens its card. Keeps
 * nothing, serves no page from a cache, and goes only to a card of this site.
 */
addEventListener('install', () => skipWaiting())
addEventListener('activate', (event) => event.waitUntil(clients.claim()))

const isCard = (path) => typeof path === 'string' && /^\/approvals\/apr_[a-z0-9]{1,40}$/.test(path)

addEventListener('push', (event) => {
  let message = {}
  try {
    message = event.data?.json() ?? {}
  } catch {
    // An unreadable message is still shown as something: a silent browser loses its subscription.
  }
  const title = typeof message.title === 'string' ? message.title : 'Nightshift: an approval waits'
  event.waitUntil(
    registration.showNotification(title, {
      body: typeof message.body === 'string' ? message.body : 'Open the page to see what is asked.',
      tag: typeof message.tag === 'string' ? message.tag : 'nightshift',
      renotify: true,
      requireInteraction: true,
      icon: '/icon-192.png',
      data: { path: isCard(message.path) ? message.path : '/approvals' },
    }),
  )
})

addEventListener('notificationclick', (event) => {
  event.notification.close()
  const given = event.notification.data?.path
  const path = isCard(given) ? given : '/approvals'
  event.waitUntil(
    clients.matchAll({ type: 'window', includeUncontrolled: true }).then(async (open) => {
      const page = open.find(({ url }) => new URL(url).pathname === path)
      if (page) return await page.focus()
      return await clients.openWindow(path)
    }),
  )
})
