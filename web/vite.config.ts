import { defineConfig } from 'vite'

/**
 * Plain files with hashed names: nothing inline, nothing from elsewhere, so that the strictest
 * policy passes them.
 */
export default defineConfig({
  root: import.meta.dirname,
  build: {
    target: 'es2023',
    // The first browsers that know light-dark().
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // A policy that allows no data: URLs for scripts and fonts must never meet one.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    // Libraries mark modules for servers that render React; this is not one.
    rolldownOptions: { checks: { moduleLevelDirective: false } },
  },
  oxc: { jsx: { runtime: 'automatic' } },
})
