import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'media/', '*.mjs'] },
  eslint.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  ...tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      complexity: ['error', 8],
      'max-lines': ['error', 300],
      'max-lines-per-function': ['error', 40],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      // tsc checks this better: it knows noPropertyAccessFromIndexSignature
      '@typescript-eslint/dot-notation': 'off',
    },
  },
  {
    // What decides something is tested without an editor, so it must run without one.
    files: ['src/logic/**', 'src/webview/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        { paths: [{ name: 'vscode', message: 'src/logic is pure: pass in what it needs' }] },
      ],
    },
  },
  { files: ['test/**'], rules: { 'max-lines-per-function': 'off' } },
);
