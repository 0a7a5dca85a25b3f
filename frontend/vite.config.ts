/// <reference types="vitest/config" />
import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [preact()],
  base: "./", // the studio may be served under any path
  build: {
    outDir: "../src/mirada/studio/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no inline scripts or styles
    chunkSizeWarningLimit: 600,
    rolldownOptions: { checks: { bundlerTimings: false } }, // says only how slow this machine is
  },
  server: { proxy: { "/api": "http://127.0.0.1:8765" } },
  test: { environment: "happy-dom", include: ["tests/**/*.test.{ts,tsx}"] },
});
