import { defineConfig } from 'vite'

/**
 * Builds plain files with hashed names: nothing inline, and nothing from other hosts, so that the
 * strictest policy allows them.
 */
export default defineConfig({
  root: import.meta.dirname,
  build: {
    target: 'es2023',
    // The first browsers with light-dark().
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // Disables data: URLs, which the policy does not allow for scripts and fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    // Ignores a mark that libraries use for servers which render React, because this is not one.
    rolldownOptions: { checks: { moduleLevelDirective: false } },
  },
  oxc: { jsx: { runtime: 'automatic' } },
})
